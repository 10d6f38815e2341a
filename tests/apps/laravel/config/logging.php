<?php

return [
    'default' => 'stderr',
    'channels' => [
        'stderr' => [
            'driver' => 'monolog',
            'handler' => Monolog\Handler\ErrorLogHandler::class,
            'level' => 'warning',
        ],
    ],
];
