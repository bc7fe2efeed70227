<?php

// The tests of what no story shows: digits, keys, stores, webhooks. It needs nothing but PHP: `php tests/run.php`.

declare(strict_types=1);

use Payrelay\Amount;
use Payrelay\ExactJson;
use Payrelay\FileStore;
use Payrelay\InvalidAmount;
use Payrelay\NameNeeded;
use Payrelay\PayrelayError;
use Payrelay\PdoStore;
use Payrelay\Record;
use Payrelay\Reply;
use Payrelay\Store;
use Payrelay\StoreFailed;
use Payrelay\Webhook;
use Payrelay\WebhookRefused;

require __DIR__ . '/../vendor/autoload.php';

const SECRET = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';

$failures = 0;

function same(string $what, mixed $expected, mixed $actual): void
{
    global $failures;
    if ($expected !== $actual) {
        $failures++;
        fwrite(STDERR, "$what: expected " . var_export($expected, true) . ', got ' . var_export($actual, true) . "\n");
    }
}

/** @param class-string<Throwable> $kind */
function throws(string $what, string $kind, Closure $call): void
{
    try {
        $call();
    } catch (Throwable $error) {
        same($what, $kind, $error::class);
        return;
    }
    same($what, $kind, 'nothing thrown');
}

// An amount passes unchanged, and a float of it never exists.
same('digits out', '{"amount":345.67}', ExactJson::encode(['amount' => Amount::of('345.67')]));
same('zeros in front', '345.60', Amount::of('00345.60')->digits);
same('digits in', ['amount' => '345.67', 'rate' => '1.0', 'text' => '1.5 "x"'],
    ExactJson::decode('{"amount": 345.67, "rate": 1.0, "text": "1.5 \"x\""}'));
same('two decimals', ['amount' => '1000.00', 'net' => '1.50', 'exchange_rate' => '1.0', 'payment_id' => '320025021815'],
    ExactJson::plain(ExactJson::decode('{"amount":1000,"net":1.5,"exchange_rate":1.0,"payment_id":320025021815}')));
same('long ids', ['payment_id' => '9999999999999999999'], ExactJson::decode('{"payment_id":9999999999999999999}'));
foreach ([345.67, true, '345,67', '1e3', 'NaN', ' 1', "1\n", null, '.5', '5.'] as $wrong) {
    throws('an amount of ' . var_export($wrong, true), InvalidAmount::class, static fn () => Amount::of($wrong));
}
throws('a float inside', InvalidAmount::class, static fn () => ExactJson::encode(['items' => [['unit_amount' => 0.1]]]));
foreach (['0.00' => 0, '345.67' => 34567, '1000' => 100000, '-12.5' => -1250, '1.500' => 150] as $text => $minor) {
    same("minor units of $text", $minor, Amount::minorUnits((string) $text));
}
throws('a part of a hundredth', InvalidAmount::class, static fn () => Amount::minorUnits('0.001'));
foreach ([34567 => '345.67', 5 => '0.05', -1250 => '-12.50', 0 => '0.00'] as $minor => $text) {
    same("amount of $minor", $text, Amount::ofMinorUnits($minor));
}

// A key is of its name alone, and a text that is no record stops the payment.
same('a key', 'charge/gateway/A%2F1%20%C3%A9~/1', Record::begun(Record::nameOf('charge', 'gateway', 'A/1 é~'), 1)->key());
throws('no name', NameNeeded::class, static fn () => Record::nameOf('capture', 'gateway', null));
throws('no Unicode', NameNeeded::class, static fn () => Record::nameOf('charge', 'gateway', "\xff"));
throws('too long', NameNeeded::class, static fn () => Record::begun('charge/gateway/' . str_repeat('a', 255), 1));
$record = new Record('charge/gateway/A', 2, 'nothing', true, 'chk_1');
same('a record', $record->text(), Record::read($record->name, $record->text())->text());
foreach (['', '[]', 'null', '{"v":2,"attempt":1,"key":"a/1","state":"open"}', '{"v":1,"attempt":"1"}'] as $text) {
    throws("a record of $text", StoreFailed::class, static fn () => Record::read('a', $text));
}

// Every store keeps what was put last, also for the next process.
$folder = sys_get_temp_dir() . '/payrelay-' . bin2hex(random_bytes(8));
$makers = [
    static fn (): Store => new FileStore("$folder/keys"),
    static function () use ($folder): Store {
        $store = new PdoStore(new PDO("sqlite:$folder/keys.db"));
        $store->createTable();
        return $store;
    },
];
foreach ($makers as $make) {
    if (!is_dir($folder)) {
        mkdir($folder);
    }
    $store = $make();
    same('an empty store', null, $store->get('charge/gateway/A'));
    $store->put('charge/gateway/A', 'one');
    $store->put('charge/gateway/A', 'two');
    same('a store that is opened again', 'two', $make()->get('charge/gateway/A'));
}
file_put_contents("$folder/file", '');
throws('a folder that can not be made', RuntimeException::class, static fn () => (new FileStore("$folder/file"))->put('a', 'b'));
$pdo = new PDO("sqlite:$folder/keys.db");
$pdo->beginTransaction();
throws('inside of a transaction', LogicException::class, static fn () => (new PdoStore($pdo))->put('a', 'b'));

// The vector of the standard's own tests, and what isn't the service's.
same('the vector', 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
    Webhook::sign(SECRET, 'msg_p5jXN8AQM9LWM0D4loKWxJek', 1614265330, '{"test": 2432232314}'));
$body = '{"id":"evt_1","type":"operation.succeeded","data":{"amount":"345.67"}}';
$headers = ['Webhook-Id' => 'msg_1', 'Webhook-Timestamp' => '1000', 'Webhook-Signature' => Webhook::sign(SECRET, 'msg_1', 1000, $body)];
same('an event', 'evt_1', Webhook::verify(['whsec_b3RoZXI=', SECRET], $headers, $body, 1300)['id']);
same('headers of Laravel', 'evt_1', Webhook::verify(SECRET, array_map(static fn ($each) => [$each], $headers), $body, 1000)['id']);
$forged = [
    'another body' => [SECRET, $headers, "$body ", 1000],
    'another secret' => ['whsec_b3RoZXI=', $headers, $body, 1000],
    'too old' => [SECRET, $headers, $body, 1301],
    'of the future' => [SECRET, $headers, $body, 699],
    'no headers' => [SECRET, [], $body, 1000],
    'another id' => [SECRET, ['Webhook-Id' => 'msg_2'] + $headers, $body, 1000],
    'no signature' => [SECRET, ['Webhook-Signature' => ''] + $headers, $body, 1000],
    'no secret' => ['whsec_', $headers, $body, 1000],
];
foreach ($forged as $what => $arguments) {
    throws($what, WebhookRefused::class, static fn () => Webhook::verify(...$arguments));
}

// What isn't the service's envelope is no answer.
foreach (['<html>', '[]', '{"status":1,"msg":"OK"}', '{"status":true,"msg":"","data":null}'] as $text) {
    same("the answer $text", Reply::UNREADABLE, Reply::read(200, [], $text)->code());
}
same('an error without its code', Reply::UNREADABLE, Reply::read(404, [], '{"status":-1,"msg":"","data":null}')->code());
same('a date', 0.0, Reply::lost('x', 'x', 'Fri, 21 Nov 2025 10:00:00 GMT')->retryAfterS());
$children = array_filter(get_declared_classes(), static fn ($class) => is_subclass_of($class, PayrelayError::class));
same('every error has its own advice', count($children), count(array_unique(array_map(
    static fn ($class) => (new $class('x'))->advice, $children))));

exec('rm -r ' . escapeshellarg($folder));
echo $failures === 0 ? "all passed\n" : "$failures failed\n";
exit($failures === 0 ? 0 : 1);
