<?php

declare(strict_types=1);

namespace Payrelay\Laravel;

use Illuminate\Database\ConnectionInterface;
use Illuminate\Support\ServiceProvider;
use Payrelay\Limits;
use Payrelay\Payrelay;
use Payrelay\Store;

/** Gives Laravel one Payrelay, made of `config/payrelay.php`, with its keys in the application's database. */
final class PayrelayServiceProvider extends ServiceProvider
{
    private const CONFIG = __DIR__ . '/../../config/payrelay.php';
    private const MIGRATIONS = __DIR__ . '/../../database';

    public function register(): void
    {
        $this->mergeConfigFrom(self::CONFIG, 'payrelay');
        $this->app->singleton(Store::class, static function ($app): Store {
            $manager = $app['db'];
            $settings = $app['config']['payrelay'];
            return new LaravelStore($manager->connection($settings['connection']), $settings['table']);
        });
        $this->app->singleton(Payrelay::class, static function ($app): Payrelay {
            $settings = $app['config']['payrelay'];
            return new Payrelay(
                (string) $settings['address'],
                (string) $settings['key'],
                $app->make(Store::class),
                new Limits(totalS: (float) $settings['total_s']),
            );
        });
    }

    public function boot(): void
    {
        $this->loadMigrationsFrom(self::MIGRATIONS);
        $this->publishes([self::CONFIG => $this->app->basePath('config/payrelay.php')], 'payrelay-config');
    }
}

/** A table of Laravel's database. Inside of a transaction nothing is durable, and put() throws: charge after the commit. */
final class LaravelStore implements Store
{
    public function __construct(private readonly ConnectionInterface $connection, private readonly string $table)
    {
    }

    public function get(string $name): ?string
    {
        // Read replicas may be behind.
        $row = $this->connection->table($this->table)->useWritePdo()->where('name', $name)->first();
        return $row === null ? null : (string) $row->record;
    }

    public function put(string $name, string $text): void
    {
        if ($this->connection->transactionLevel() > 0) {
            throw new \LogicException('a key is not durable inside of a transaction: charge after the commit');
        }
        $this->connection->table($this->table)->updateOrInsert(['name' => $name], ['record' => $text]);
    }
}
