<?php

// The service provider in a Laravel application, as far as its components are installed: `php tests/laravel.php`.
// On Debian: apt-get install php-illuminate-database php-illuminate-config php-illuminate-events php-vlucas-phpdotenv.

declare(strict_types=1);

use Illuminate\Config\Repository;
use Illuminate\Container\Container;
use Illuminate\Database\Capsule\Manager;
use Illuminate\Support\Facades\Facade;
use Payrelay\Laravel\PayrelayServiceProvider;
use Payrelay\Payrelay;
use Payrelay\Store;

@include_once 'PhpOption/autoload.php';
@include_once 'Dotenv/autoload.php';
foreach (['Config', 'Container', 'Database', 'Events', 'Support'] as $component) {
    @include_once "Illuminate/$component/autoload.php";
}
if (!class_exists(Manager::class)) {
    fwrite(STDERR, "Laravel's components aren't installed\n");
    exit(77);
}
require __DIR__ . '/../vendor/autoload.php';

/** An application of as much as a provider of a package sees. */
final class Application extends Container
{
    public function configurationIsCached(): bool
    {
        return false;
    }

    public function basePath(string $path = ''): string
    {
        return sys_get_temp_dir() . "/$path";
    }
}

$app = new Application();
$app['config'] = new Repository(['payrelay' => ['address' => 'https://pay.example.com/gateway/api', 'key' => 'prk_1']]);
$capsule = new Manager($app);
$capsule->addConnection(['driver' => 'sqlite', 'database' => ':memory:']);
$app['db'] = $capsule->getDatabaseManager();
$app->singleton('db.schema', static fn ($app) => $app['db']->connection()->getSchemaBuilder());
Facade::setFacadeApplication($app);

$provider = new PayrelayServiceProvider($app);
$provider->register();
$provider->boot();
(require __DIR__ . '/../database/2026_11_23_000000_create_payrelay_keys.php')->up();

$store = $app->make(Store::class);
$store->put('charge/gateway/A', 'one');
$store->put('charge/gateway/A', 'two');
$isKept = $store->get('charge/gateway/A') === 'two' && $store->get('charge/gateway/B') === null;
$isSingle = $app->make(Payrelay::class) === $app->make(Payrelay::class);
$isRefused = false;
$app['db']->connection()->beginTransaction();
try {
    $store->put('charge/gateway/A', 'three');
} catch (LogicException) {
    $isRefused = true;
}
echo json_encode(['kept' => $isKept, 'single' => $isSingle, 'refused in a transaction' => $isRefused]), "\n";
exit($isKept && $isSingle && $isRefused ? 0 : 1);
