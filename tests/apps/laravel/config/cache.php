<?php

return [
    'default' => 'array',
    'stores' => ['array' => ['driver' => 'array', 'serialize' => false], 'shared' => ['driver' => 'surus']],
    'prefix' => 'laravel',
];
