<?php

// Runs ShopController with Laravel's own container, router and requests, without the rest of a Laravel application.
// On Debian: apt-get install php-cli php-curl php-illuminate-http php-illuminate-routing composer, and then
// `composer dump-autoload` in clients/php.

declare(strict_types=1);

use App\Http\Controllers\ShopController;
use Illuminate\Container\Container;
use Illuminate\Events\Dispatcher;
use Illuminate\Http\{JsonResponse, Request};
use Illuminate\Routing\Router;
use Payrelay\{FileStore, Limits, Payrelay, PayrelayError, WebhookRefused};
use Symfony\Component\HttpKernel\Exception\HttpExceptionInterface;

// The page's files, which a web server gives by itself.
$file = realpath(__DIR__ . '/..' . rawurldecode((string) parse_url($_SERVER['REQUEST_URI'], PHP_URL_PATH)));
if ($file !== false && is_file($file) && str_starts_with($file, realpath(__DIR__ . '/../page') . '/')) {
    header('Content-Type: ' . (str_ends_with($file, '.css') ? 'text/css' : 'text/javascript'));
    readfile($file);
    return true;
}
foreach (['Container', 'Events', 'Http', 'Routing'] as $component) {
    @include_once "Illuminate/$component/autoload.php";
}
require getenv('SHOP_AUTOLOAD') ?: __DIR__ . '/../../../clients/php/vendor/autoload.php';
require __DIR__ . '/ShopController.php';

$data = (string) getenv('SHOP_DATA');
is_dir($data) || mkdir($data, 0700, true);

// What a service provider and config/ hold in an application. The package's own provider keeps keys in the database.
$app = new Container();
$app->instance(Payrelay::class, new Payrelay(
    (string) getenv('PAYRELAY'), (string) getenv('PAYRELAY_KEY'), new FileStore("$data/keys"), new Limits(totalS: 30),
));
$app->when(ShopController::class)->needs('$shop')->give(json_decode(file_get_contents(__DIR__ . '/../shop.json'), true));
$app->when(ShopController::class)->needs('$settings')->give([
    'here' => ['address' => (string) getenv('PAYRELAY'), 'simulator' => (string) getenv('SHOP_SIMULATOR')], // which only a demo has
    'webhook_secret' => (string) getenv('PAYRELAY_WEBHOOK_SECRET'),
    'secret' => (string) getenv('SHOP_SECRET'),
    'data' => $data,
]);

// routes/web.php
$router = new Router(new Dispatcher($app), $app);
$router->get('/', [ShopController::class, 'page']);
$router->get('/me', [ShopController::class, 'me']);
$router->post('/cards', [ShopController::class, 'approveCard']);
$router->delete('/cards/{card}', [ShopController::class, 'removeCard']);
$router->post('/orders', [ShopController::class, 'order']);
$router->post('/club', [ShopController::class, 'joinClub']);
$router->delete('/club', [ShopController::class, 'leaveClub']);
$router->post('/webhooks', [ShopController::class, 'takeNews']); // without the middleware that wants a CSRF token

// In an application the exception handler does this.
$request = Request::capture();
$app->instance(Request::class, $request);
try {
    $response = $router->dispatch($request);
} catch (PayrelayError $error) {
    $status = $error instanceof WebhookRefused ? 400 : ($error->httpStatus ?? 502);
    $response = new JsonResponse(['message' => $error->getMessage()], $status);
} catch (HttpExceptionInterface $error) {
    $response = new JsonResponse(['message' => 'There is nothing here.'], $error->getStatusCode());
}
$response->send();
