<?php

/** The mixed load of `memory/run` in classic mode: one path for each kind of request. */

declare(strict_types=1);

require __DIR__ . '/library.php';

$path = strtok($_SERVER['REQUEST_URI'], '?');

switch ($path) {
    case '/json':
        header('Content-Type: application/json');
        echo json_encode(['message' => 'ok', 'numbers' => range(1, 20)]);
        break;

    case '/get':
        echo 'ok ', $_GET['name'], count($_SERVER);
        break;

    case '/form':
        echo 'ok ', $_POST['name'];
        break;

    case '/body':
        echo file_get_contents('php://input');
        break;

    case '/echo':
        header('X-Shape: round');
        setcookie('seen', '1');
        ob_start(strtoupper(...));
        echo 'ok';
        ob_end_flush();
        break;

    case '/session':
        session_id($_GET['id']);
        session_start(['use_cookies' => '0', 'save_path' => sys_get_temp_dir()]);
        $_SESSION['count'] = ($_SESSION['count'] ?? 0) + 1;
        echo 'ok ', $_SESSION['count'];
        break;

    case '/exception':
        throw new Refused('as asked for');

    case '/park':
        $text = str_repeat('x', 10_000);
        usleep(1000);
        echo 'ok ', strlen($text);
        break;

    case '/park-state':
        ini_set('precision', '5');
        date_default_timezone_set('Asia/Tokyo');
        set_error_handler(static fn (): bool => true);
        usleep(1000);
        echo $undefined, 'ok ', ini_get('precision');
        break;

    case '/cycle':
        $first = new stdClass();
        $second = new stdClass();
        $first->other = $second;
        $second->other = $first;
        echo 'ok';
        break;

    case '/fiber':
        $fiber = new Fiber(function (): string {
            usleep(500);
            return Fiber::suspend('ok');
        });
        echo $fiber->start();
        break;

    case '/exit':
        echo 'ok';
        exit;

    case '/stream':
        foreach (words() as $word) {
            echo $word;
            flush();
        }
        break;

    case '/shutdown':
        register_shutdown_function(static function (): void {
            echo ' afterwards';
        });
        echo 'ok';
        break;

    case '/memory':
        echo json_encode([
            'usage' => memory_get_usage(),
            'real' => memory_get_usage(true),
            'peak' => memory_get_peak_usage(true),
            'cycles' => gc_status()['roots'],
        ]);
        break;

    default:
        echo 'ok ', greet($path);
}
