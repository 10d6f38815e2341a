//! What the client, not the server, was told about a connection by its last user.

use surus_tests::mariadb::MariaDb;
use surus_tests::surus::Mode;

use super::Site;

/// The next user finds what a new connection has.
pub(super) fn check(mode: Mode, driver: &str, more: &str) {
    let mut site = Site::new(mode, driver);
    if driver.contains("mysql") {
        MariaDb::shared().create_once("test");
    }
    site.common.push_str(more);
    let fresh = site.ask("step=fresh");
    for round in 0..2 {
        let mut found = site.leave_and_find("", true);
        found.as_object_mut().expect("an object").remove("pid");
        assert_eq!(found, fresh, "{mode:?} {driver}{more} {round}");
    }
}
