//! Services whose factories wait: others who want them meanwhile wait for the same object.

use serde_json::json;
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;

const APPLICATION: &str = r#"<?php
    use Surus\{App, Container};
    use Surus\Http\Request;
    use function Surus\{all, async, delay};

    final class Slow
    {
        public static int $made = 0;
        public static int $failed = 0;
        public function __construct() { self::$made++; }
    }
    final class ForAll
    {
        public static int $made = 0;
        public function __construct() { self::$made++; }
    }
    function asking(Container $all, Request $request, string $id): Closure
    {
        return static function () use ($all, $request, $id): mixed {
            try {
                return $all->get($id, $request);
            } catch (RuntimeException | LogicException $error) {
                return $error->getMessage();
            }
        };
    }

    $app = new App();
    $app->scoped(Slow::class, function (): Slow { delay(0.05); return new Slow(); });
    $app->singleton(ForAll::class, function (): ForAll { delay(0.05); return new ForAll(); });
    $app->scoped('failing', function () { Slow::$failed++; delay(0.05); throw new RuntimeException('no luck'); });
    $app->scoped('a', function (Container $all, ?Request $request) { delay(0.05); return [$all->get('b', $request)]; });
    $app->scoped('b', function (Container $all, ?Request $request) { delay(0.2); return [$all->get('a', $request)]; });
    $app->scoped('own', fn (Container $all, ?Request $request) => $all->get('own', $request));
    $app->scoped('child', fn (Container $all, ?Request $request) => all([fn () => $all->get('child', $request)]));

    $app->get('/scoped', function (Container $all, Request $request): array {
        $get = asking($all, $request, Slow::class);
        [$one, $other] = all([$get, $get]);
        return [$one instanceof Slow, $one === $other, $one === $get(), Slow::$made];
    });
    $app->get('/shared', function (Container $all, Request $request): array {
        $get = asking($all, $request, ForAll::class);
        [$one, $other] = all([$get, $get]);
        return [$one instanceof ForAll, $one === $other, ForAll::$made];
    });
    $app->get('/failing', function (Container $all, Request $request): array {
        $get = asking($all, $request, 'failing');
        return [...all([$get, $get]), Slow::$failed, $get(), Slow::$failed];
    });
    $app->get('/circle', fn (Container $all, Request $request): array =>
        all([asking($all, $request, 'a'), asking($all, $request, 'b')]));
    $app->get('/own', fn (Container $all, Request $request): array => [asking($all, $request, 'own')()]);
    $app->get('/child', fn (Container $all, Request $request): array => [asking($all, $request, 'child')()]);
    $app->get('/cancelled', function (Container $all, Request $request): array {
        $get = asking($all, $request, Slow::class);
        $first = async($get);
        delay(0.01);
        $second = async($get);
        delay(0.01);
        $first->cancel();
        return [$second->await() instanceof Slow];
    });
    return $app;"#;

#[test]
fn what_is_being_made_is_waited_for() {
    let folder = TempDir::new("services");
    let server = Surus::serve(&folder.file("app.php", APPLICATION)).start();
    let asked_by =
        |id: &str| format!("Services need each other: {id} is asked for by what makes it");
    for (path, answer) in [
        ("/scoped", json!([true, true, true, 1])),
        ("/shared", json!([true, true, 1])),
        ("/failing", json!(["no luck", "no luck", 1, "no luck", 2])),
        ("/circle", json!([asked_by("a"), asked_by("a")])),
        ("/own", json!([asked_by("own")])),
        ("/child", json!([asked_by("child")])),
        ("/cancelled", json!([true])),
    ] {
        let response = Request::get(path).send(server.address()).expect(200);
        assert_eq!(response.json(), answer, "{path}");
    }
}
