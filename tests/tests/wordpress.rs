//! Stock WordPress, as Debian packages it, in one process: installed, visited by sixty at once, written in,
//! commented on. php-fpm serves the same files and the same database, and its pages are the measure.
#![forbid(unsafe_code)]

use std::net::SocketAddr;

use serde_json::{json, Value};
use surus_tests::browser::Browser;
use surus_tests::http::{Part, Request, Response};
use surus_tests::mariadb::MariaDb;
use surus_tests::parallel::together;
use surus_tests::reference::Reference;
use surus_tests::surus::{Mode, Surus};
use surus_tests::wordpress::WordPress;

const USER: &str = "hannibal";
const PASSWORD: &str = "over the alps";

/// Pages that any visitor sees, right after the installation.
const PAGES: [&str; 13] = [
    "/",
    "/sample-page/",
    "/?p=1",
    "/?page_id=2",
    "/?s=hello",
    "/category/uncategorized/",
    "/author/hannibal/",
    "/feed/",
    "/comments/feed/",
    "/?p=99999",
    "/wp-login.php",
    "/?rest_route=/wp/v2/posts",
    "/xmlrpc.php?rsd",
];

/// Pages of a user who is logged in.
const ADMIN_PAGES: [&str; 5] = [
    "/wp-admin/edit.php",
    "/wp-admin/upload.php?mode=list",
    "/wp-admin/edit-comments.php",
    "/wp-admin/themes.php",
    "/wp-admin/users.php",
];

/// One WordPress behind two servers.
struct Site {
    surus: SocketAddr,
    reference: SocketAddr,
}

#[test]
fn installed_visited_and_written_in() {
    let wordpress = WordPress::new(MariaDb::shared());
    let surus = Surus::serve(wordpress.root()).mode(Mode::Classic).start();
    let reference = Reference::serve(wordpress.root());
    let site = Site {
        surus: surus.address(),
        reference: reference.address(),
    };

    site.install();
    site.visit_at_once();
    let mut admin = site.log_in();
    for page in ADMIN_PAGES {
        site.same_for(&mut admin, page);
    }
    let picture = site.upload(&mut admin);
    let post = site.publish(&mut admin, &picture);
    site.comment(&mut admin, post);
    site.visit_at_once();
}

impl Site {
    fn install(&self) {
        let mut visitor = Browser::new(self.surus);
        let first = visitor.get("/").expect(302);
        let location = first.header("location").unwrap_or_default();
        assert!(location.ends_with("/wp-admin/install.php"), "{location}");
        let form = [
            ("weblog_title", "Surus' log"),
            ("user_name", USER),
            ("admin_password", PASSWORD),
            ("admin_password2", PASSWORD),
            ("pw_weak", "on"),
            ("admin_email", "hannibal@example.org"),
            ("blog_public", "0"),
            ("language", ""),
        ];
        let done = visitor
            .send(Request::post("/wp-admin/install.php?step=2").form(&form))
            .expect(200);
        assert!(
            done.text().contains("WordPress has been installed"),
            "{}",
            done.text()
        );
    }

    /// Sixty page loads at once; each must be what php-fpm gives.
    fn visit_at_once(&self) {
        let expected = PAGES.map(|page| self.plain(&Request::get(page).send(self.reference)));
        assert!(expected[0].contains("<title>Surus"), "{}", expected[0]);
        // WordPress turns such paths on when it reaches itself while it is being installed: one request
        // that waits for another of the same process.
        assert!(
            expected[1].contains("<title>Sample Page"),
            "{}",
            expected[1]
        );
        let (pages, took) = together(60, |number| {
            let page = PAGES[number % PAGES.len()];
            self.plain(&Request::get(page).send(self.surus))
        });
        println!("60 pages at once took {took:?}");
        for (number, page) in pages.iter().enumerate() {
            let index = number % PAGES.len();
            assert_same(PAGES[index], &expected[index], page);
        }
    }

    fn log_in(&self) -> Browser {
        let mut user = Browser::new(self.surus);
        let form = user.get("/wp-login.php").expect(200);
        assert!(form.text().contains("loginform"));
        let wrong = [("log", USER), ("pwd", "wrong"), ("testcookie", "1")];
        let refused = user
            .send(Request::post("/wp-login.php").form(&wrong))
            .expect(200);
        assert!(refused.text().contains("login_error"), "{}", refused.text());
        let right = [
            ("log", USER),
            ("pwd", PASSWORD),
            ("testcookie", "1"),
            ("redirect_to", "/wp-admin/"),
        ];
        let dashboard = user
            .follow(Request::post("/wp-login.php").form(&right))
            .expect(200);
        assert!(
            dashboard.text().contains("id=\"dashboard-widgets"),
            "{}",
            dashboard.text()
        );
        user
    }

    /// Checks that a user sees the same page at both servers; returns Surus's.
    fn same_for(&self, user: &mut Browser, page: &str) -> String {
        let expected = readable(self.plain(&user.at(self.reference).follow(Request::get(page))));
        let got = readable(self.plain(&user.follow(Request::get(page))));
        assert_same(page, &expected, &got);
        got
    }

    /// Adds a picture to the media library; the answer of the API.
    fn upload(&self, admin: &mut Browser) -> Value {
        let file =
            std::fs::read(surus_tests::fixture("wordpress/elephant.png")).expect("the picture");
        let parts = [
            Part::field("title", "An elephant"),
            Part::file("file", "elephant.png", "image/png", &file),
        ];
        let request = Request::post("/?rest_route=/wp/v2/media").multipart(&parts);
        let media = api(admin, request).expect(201).json();
        let url = media["source_url"].as_str().expect("a URL");
        assert_eq!(
            Request::get(self.path(url))
                .send(self.surus)
                .expect(200)
                .body,
            file
        );
        for size in ["medium", "thumbnail", "medium_large"] {
            let url = media["media_details"]["sizes"][size]["source_url"].as_str();
            let url = url.unwrap_or_else(|| panic!("no {size}: {media}"));
            let scaled = Request::get(self.path(url)).send(self.surus).expect(200);
            assert!(scaled.body.starts_with(b"\x89PNG"), "{size}");
        }
        media
    }

    /// Publishes a post with the picture in it; its number.
    fn publish(&self, admin: &mut Browser, picture: &Value) -> u64 {
        let url = picture["source_url"].as_str().expect("a URL");
        let post = json!({
            "title": "Over the Alps",
            "content": format!("<p>Thirty-seven elephants — one came through.</p><p><img src=\"{url}\"></p>"),
            "status": "publish",
            "featured_media": picture["id"],
        });
        let request =
            Request::post("/?rest_route=/wp/v2/posts").body("application/json", post.to_string());
        let post = api(admin, request).expect(201).json();
        let number = post["id"].as_u64().expect("a number");

        let mut visitor = Browser::new(self.surus);
        let page = self.same_for(&mut visitor, &format!("/?p={number}"));
        assert!(
            page.contains("Thirty-seven elephants — one came through."),
            "{page}"
        );
        assert!(page.contains("elephant.png"), "{page}");
        assert!(self.same_for(&mut visitor, "/").contains("Over the Alps"));
        self.same_for(admin, "/wp-admin/edit.php");
        number
    }

    /// A visitor comments; the visitor sees it at once, everybody when it is approved.
    fn comment(&self, admin: &mut Browser, post: u64) {
        const TEXT: &str = "I have seen it with my own eyes & ears.";
        const SHOWN: &str = "I have seen it with my own eyes &amp; ears.";
        let page = format!("/?p={post}");
        let number = post.to_string();
        let form = [
            ("comment", TEXT),
            ("author", "Polybius"),
            ("email", "polybius@example.org"),
            ("url", ""),
            ("comment_post_ID", number.as_str()),
            ("comment_parent", "0"),
            ("submit", "Post Comment"),
        ];
        let mut author = Browser::new(self.surus);
        let own = author
            .follow(Request::post("/wp-comments-post.php").form(&form))
            .expect(200);
        assert!(own.text().contains(SHOWN), "{}", own.text());
        let mut other = Browser::new(self.surus);
        assert!(
            !self.same_for(&mut other, &page).contains(SHOWN),
            "shown before it was approved"
        );

        let list = Request::get("/?rest_route=/wp/v2/comments&status=hold");
        let comments = api(admin, list).expect(200).json();
        let id = &comments[0]["id"];
        let approve = Request::post(&format!("/?rest_route=/wp/v2/comments/{id}")).body(
            "application/json",
            json!({"status": "approved"}).to_string(),
        );
        api(admin, approve).expect(200);
        assert!(self.same_for(&mut other, &page).contains(SHOWN));
        self.same_for(admin, "/wp-admin/edit-comments.php");
    }

    /// The response as text, with the address of the server taken out.
    fn plain(&self, response: &Response) -> String {
        let mut text = format!(
            "{} {} {}",
            response.status,
            response.header("location").unwrap_or_default(),
            response.text()
        );
        for address in [self.surus, self.reference] {
            let address = address.to_string();
            text = text
                .replace(&address, "site.test")
                .replace(&address.replace(':', "%3A"), "site.test");
        }
        text
    }

    fn path<'a>(&self, url: &'a str) -> &'a str {
        url.strip_prefix(&format!("http://{}", self.surus))
            .unwrap_or_else(|| panic!("a URL of elsewhere: {url}"))
    }
}

/// A request to the REST API, with the nonce that it wants of a logged-in user.
fn api(admin: &mut Browser, request: Request) -> Response {
    let nonce = admin
        .get("/wp-admin/admin-ajax.php?action=rest-nonce")
        .expect(200)
        .text();
    admin.send(request.header("X-WP-Nonce", &nonce))
}

/// Takes out what is new each time: the seconds in two fields of the admin pages, and the work of
/// `antispambot()`, which writes letters of mail addresses as entities by chance.
fn readable(mut text: String) -> String {
    for marker in ["\"time\":\"", "name=\"pagegen_timestamp\" value=\""] {
        if let Some((before, after)) = text.split_once(marker) {
            let rest = after.trim_start_matches(|sign| sign != '"');
            text = format!("{before}{marker}NOW{rest}");
        }
    }
    for code in b'!'..=b'~' {
        text = text.replace(&format!("&#{code:03};"), &char::from(code).to_string());
    }
    text
}

/// Compares two pages; what is reported is the first line that differs.
fn assert_same(page: &str, expected: &str, got: &str) {
    if expected == got {
        return;
    }
    let (one, other) = expected
        .lines()
        .zip(got.lines())
        .find(|(one, other)| one != other)
        .unwrap_or(("(only the length differs)", got));
    panic!(
        "{page} differs from php-fpm's ({} and {} bytes)\n{one}\n{other}",
        expected.len(),
        got.len()
    );
}
