<?php

// Makes one call as a conformance story tells it: a JSON object on standard input, one line of JSON as the answer.
// PAYRELAY_AUTOLOAD names the autoloader of an installed package.

declare(strict_types=1);

use Payrelay\Done;
use Payrelay\FileStore;
use Payrelay\Limits;
use Payrelay\Open;
use Payrelay\PaymentList;
use Payrelay\Payrelay;
use Payrelay\PayrelayError;
use Payrelay\Store;
use Payrelay\Waiting;
use Payrelay\Webhook;

require getenv('PAYRELAY_AUTOLOAD') ?: __DIR__ . '/../vendor/autoload.php';

/** A store of files that counts what is put, and fails or dies where the story says so. */
final class WatchedStore implements Store
{
    public int $puts = 0;

    public function __construct(private readonly FileStore $files, private readonly ?array $fault)
    {
    }

    public function get(string $name): ?string
    {
        return $this->files->get($name);
    }

    public function put(string $name, string $text): void
    {
        $this->puts++;
        $fault = $this->puts === ($this->fault['put'] ?? 0) ? $this->fault['do'] : '';
        if ($fault === 'fail') {
            throw new RuntimeException('the disk is full');
        }
        if ($fault === 'kill_before') {
            posix_kill(posix_getpid(), SIGKILL);
        }
        $this->files->put($name, $text);
        if ($fault === 'kill_after') {
            posix_kill(posix_getpid(), SIGKILL);
        }
    }
}

/** Gives the arguments of a call by the names that PHP has for them. */
function named(array $given): array
{
    $named = [];
    foreach ($given as $name => $value) {
        $named[lcfirst(str_replace('_', '', ucwords((string) $name, '_')))] = $value;
    }
    return $named;
}

function called(Payrelay $payrelay, string $call, array $given, array $options): mixed
{
    return match ($call) {
        'charge' => $payrelay->payments->charge(...named($given), ...$options),
        'capture' => $payrelay->payments->capture(...named($given), ...$options),
        'refund' => $payrelay->payments->refund(...named($given), ...$options),
        'void' => $payrelay->payments->void(...named($given), ...$options),
        'retry' => $payrelay->subscriptions->retry($given['subscription_id'], ...$options),
        'cancel' => $payrelay->subscriptions->cancel($given['subscription_id'], ...$options),
        'open_checkout' => $payrelay->checkouts->open($given, ...$options),
        'close_checkout' => $payrelay->checkouts->close($given['id']),
        'show_checkout' => $payrelay->checkouts->show($given['id']),
        'issue_client_token' => $payrelay->clientTokens->issue($given),
        'show_order' => $payrelay->orders->show($given['order_id']),
        'payments_of_order' => $payrelay->payments->ofOrder($given['order_id']),
        'show_operation_by_key' => $payrelay->operations->byKey($given['key']),
        'list_operations' => array_column(iterator_to_array(
            $payrelay->operations->list(['order_id' => $given['order_id']], $given['limit'] ?? null),
            false,
        ), 'id'),
        'follow' => $payrelay->operations->follow($given['operation_id'], $given['by'] ?? 'wait'),
        'verify_webhook' => Webhook::verify($given['secret'], $given['headers'], $given['body']),
    };
}

$step = json_decode((string) stream_get_contents(STDIN), true, 64, JSON_THROW_ON_ERROR);
$settings = $step['settings'] ?? [];
$credentials = $step['credentials'];
$store = isset($step['store']) ? new WatchedStore(new FileStore($step['store']), $step['storeFault'] ?? null) : null;
$waits = [];
$payrelay = new Payrelay(
    $step['address'],
    count($credentials) === 1 ? $credentials[0] : function () use (&$credentials): string {
        $next = count($credentials) > 1 ? array_shift($credentials) : $credentials[0];
        return $next ?? throw new RuntimeException('the shop gives no credential');
    },
    $store,
    new Limits(...$settings),
    function (Waiting $waiting) use (&$waits): void {
        $waits[] = ['reason' => $waiting->reason, 'seconds' => $waiting->seconds];
    },
);
try {
    $made = called($payrelay, $step['call'], $step['with'] ?? [], $step['options'] ?? []);
    $result = match (true) {
        $made instanceof Open => [
            'result' => 'open', 'reason' => $made->reason, 'operation_id' => $made->operationId,
            'is_with_person' => $made->isWithPerson,
        ],
        $made instanceof Done => [
            'result' => 'done', 'data' => $made->data, 'operation_id' => $made->operationId, 'is_replay' => $made->isReplay,
        ],
        $made instanceof PaymentList => [
            'result' => 'done', 'data' => $made, 'missing' => $made->missing, 'operation_id' => null, 'is_replay' => false,
        ],
        default => ['result' => 'done', 'data' => $made, 'operation_id' => null, 'is_replay' => false],
    };
} catch (PayrelayError $error) {
    $result = [
        'result' => 'error', 'type' => (new ReflectionClass($error))->getShortName(), 'code' => $error->errorCode,
        'message' => $error->getMessage(), 'retry_after_s' => $error->retryAfterS, 'operation_id' => $error->operationId,
    ];
}
echo json_encode($result + ['puts' => $store?->puts ?? 0, 'waits' => $waits], JSON_THROW_ON_ERROR | JSON_UNESCAPED_SLASHES), "\n";
