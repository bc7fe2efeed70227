<?php

return [
    // Of the account's API, such as https://pay.example.com/gateway/api.
    'address' => env('PAYRELAY_ADDRESS'),
    'key' => env('PAYRELAY_KEY'),
    // How long a call may take in all, in seconds. A web request shouldn't wait for two minutes.
    'total_s' => env('PAYRELAY_TOTAL_S', 30),
    // Where keys are stored; null is the usual connection.
    'connection' => env('PAYRELAY_CONNECTION'),
    'table' => 'payrelay_keys',
];
