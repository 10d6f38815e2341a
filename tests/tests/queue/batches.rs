//! Batches, progress and rates.

use std::time::Duration;

use surus_tests::waiting::wait_for;

use super::support::{get, kill_owner, push, Site};

#[test]
fn jobs_follow_a_batch_also_if_the_owner_is_killed() {
    let site = Site::new();
    let server = site.start_large();
    // All are done.
    let first = get(&server, "/batch/note/a,b,c");
    site.wait_for("note then 1", 1);
    site.wait_for("note finally 1", 1);
    assert_eq!(get(&server, &format!("/batch/{first}")), "[null]");
    assert_eq!(site.notes().get("note catch 1"), None);
    // One fails; another one waits while its owner dies.
    let second = get(&server, "/batch/one/first,later");
    site.wait_for("one first", 1);
    let third = get(&server, "/batch/fails/x");
    site.wait_for("note catch 1", 1);
    site.wait_for("note finally 1", 2);
    kill_owner(&server);
    for command in [&["status"][..], &["top", "-n", "1"]] {
        let (_, text) = server.command(command);
        assert!(
            text.contains("queue one: 1 waiting, 0 delayed, 1 running"),
            "{text}"
        );
    }
    let shown = get(&server, &format!("/batch/{third}"));
    assert_eq!(shown, r#"[{"total":1,"done":0,"failed":1,"forgotten":0}]"#);
    let shown = get(&server, &format!("/batch/{second}"));
    assert_eq!(shown, r#"[{"total":2,"done":0,"failed":0,"forgotten":0}]"#);
    let (_, said) = site.command(&["batches"]);
    assert_eq!(said.lines().count(), 2, "{said}");
    assert!(
        said.contains(&format!("{second}  jobs 2  done 0  failed 0")),
        "{said}"
    );
    site.sign("go");
    site.wait_for("note then 1", 2);
    site.wait_for("note finally 1", 3);
    let notes = site.notes();
    assert_eq!(
        (notes["one first"], notes["one later"]),
        (1, 1),
        "{notes:?}"
    );
    let refused = get(&server, "/big-batch");
    assert!(refused.contains("of 67108864 at most"), "{refused}");
}

#[test]
fn running_jobs_say_how_far_they_are_and_a_rate_keeps_them_apart() {
    let site = Site::new();
    let server = site.options().start();
    push(&server, "half/x");
    site.wait_for("half", 1);
    let shown = || site.command(&["list", "half"]).1;
    wait_for("it is not shown", || shown().contains("running 50%"));
    site.sign("go");
    for n in 0..10 {
        push(&server, &format!("slow/{n}"));
    }
    let begun = || -> Vec<u64> {
        let lines = site.lines();
        let times = lines.iter().filter_map(|line| line.strip_prefix("slow "));
        times.map(|time| time.parse().expect("a time")).collect()
    };
    wait_for("they do not run", || begun().len() == 10);
    // On a busy machine they are late, and make up for 20 ms of it.
    let times = begun();
    let took = Duration::from_nanos(times[9] - times[0]);
    assert!(took >= Duration::from_millis(9 * 50 - 50), "{took:?}");
}
