//! Dates in JSON of responses: RFC 3339, and only there.

use std::thread;

use serde_json::json;
use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;

const APP: &str = r#"<?php
use Surus\App;
use Surus\Http\Response;

final class Order
{
    public function __construct(public readonly DateTimeImmutable $at, public readonly array $more = []) {}
}
/** It waits while its response is encoded, and encodes something itself. */
final class Slow implements JsonSerializable
{
    public function __construct(private string $year) {}
    public function jsonSerialize(): array
    {
        usleep(50_000);
        $day = new DateTime("{$this->year}-01-01 UTC");
        return ['own' => json_encode($day), 'day' => $day];
    }
}
class Special extends DateTimeImmutable implements JsonSerializable
{
    public function jsonSerialize(): string { return 'special'; }
}
class Extended extends DateTime
{
    public int $x = 1;
    public function format(string $format): string { return 'mine'; }
}

$app = new App();
$at = new DateTimeImmutable('2026-11-23 18:00:00 +01:00');
$app->get('/array', fn () => ['at' => $at, 'fine' => new DateTime('2020-01-02 03:04:05.678 UTC'), 'text' => '}', 'none' => null]);
$app->get('/order', fn (): Order => new Order($at, [new Order($at), new Special(), new Extended('2021-02-03 UTC'), new DateTimeZone('UTC')]));
$app->get('/date', fn () => $at);
$app->get('/response', fn () => Response::json(['at' => $at]));
$app->get('/events', fn () => Response::events([['data' => ['at' => $at]]]));
$app->get('/plain', fn () => json_encode($at));
$app->get('/slow/{year}', fn (string $year) => [new Slow($year), $at]);
return $app;
"#;

#[test]
fn dates_in_responses_are_rfc_3339() {
    let folder = TempDir::new("dates");
    let server = Surus::serve(&folder.file("app.php", APP)).start();
    let get = |path: &str| Request::get(path).send(server.address()).expect(200);
    let at = "2026-11-23T18:00:00+01:00";
    for _ in 0..2 {
        let fine = "2020-01-02T03:04:05.678000+00:00";
        assert_eq!(
            get("/array").json(),
            json!({"at": at, "fine": fine, "text": "}", "none": null})
        );
        let zone = json!({"timezone_type": 3, "timezone": "UTC"});
        let inner = json!({"at": at, "more": []});
        let extended = "2021-02-03T00:00:00+00:00";
        assert_eq!(
            get("/order").json(),
            json!({"at": at, "more": [inner, "special", extended, zone]})
        );
        assert_eq!(get("/date").json(), json!(at));
        assert_eq!(get("/response").json(), json!({"at": at}));
        assert_eq!(
            get("/events").text(),
            format!("data: {{\"at\":\"{at}\"}}\n\n")
        );
        assert_eq!(get("/plain").json()["timezone"], "+01:00");
    }
    // Each while others are encoded.
    thread::scope(|scope| {
        for year in 2001..2021 {
            let get = &get;
            scope.spawn(move || {
                let found = get(&format!("/slow/{year}")).json();
                assert_eq!(found[0]["day"], format!("{year}-01-01T00:00:00+00:00"));
                let own = found[0]["own"].as_str().expect("text");
                assert!(
                    own.starts_with(&format!("{{\"date\":\"{year}-01-01")),
                    "{own}"
                );
                assert_eq!(found[1], at);
            });
        }
    });
}

#[test]
fn the_document_says_so() {
    let folder = TempDir::new("dates");
    let script = folder.file("app.php", APP);
    let (code, text) = Surus::run(&["openapi", script.to_str().expect("a path")]);
    assert_eq!(code, Some(0), "{text}");
    let json = &text[text.find('{').expect("JSON")..];
    let document: serde_json::Value = serde_json::from_str(json).expect("JSON");
    let order = &document["components"]["schemas"]["Order"];
    let date = json!({"type": "string", "format": "date-time"});
    assert_eq!(order["properties"]["at"], date, "{document:#}");
}
