<?php

/** A case for each request, in classic mode. */

declare(strict_types=1);

require __DIR__ . '/cases.php';

define('ZONE', ini_get('date.timezone') ?: 'UTC');

stream_filter_register('stress.upper', Upper::class);

echo $_REQUEST['id'] . ' ';
echo answer($_GET['case'], $_GET['id'], (int) $_GET['us']);
