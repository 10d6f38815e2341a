//! `examples/jobs`.

use std::path::Path;

use surus_tests::http::Request;
use surus_tests::surus::Surus;
use surus_tests::temp::TempDir;
use surus_tests::waiting::wait_for;

#[test]
fn orders_are_handled_in_the_background() {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/jobs/app.php");
    let folder = TempDir::new("jobs");
    let server = Surus::serve(&script)
        .argument("--set")
        .argument(format!(
            "queue_folder={}",
            folder.path().join("jobs").display()
        ))
        .start();
    for _ in 0..5 {
        let answer = Request::post("/orders").send(server.address()).expect(200);
        assert!(answer.json()["order"].is_u64());
    }
    wait_for("they are not handled", || {
        let counts = Request::get("/").send(server.address()).expect(200).json();
        counts["done"].as_u64() >= Some(5)
    });
    assert!(server.status()["jobs"]["done"].as_u64() >= Some(5));
    assert!(server.log().contains("is handled"));
}
