<?php

declare(strict_types=1);

?>
<!doctype html>
<html lang="en">
<meta charset="utf-8">
<title>Surus is running</title>
<body style="font: 16px/1.5 system-ui, sans-serif; margin: 2rem">
<h1>Surus is running</h1>
<p>This is PHP <?= PHP_VERSION ?>. What is served is said in <code>/etc/surus/surus.toml</code>.
