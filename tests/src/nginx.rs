//! nginx in a folder of its own, in the foreground.

use std::path::Path;

/// A whole configuration around the contents of its `http` block.
pub fn configuration(folder: &Path, http: &str) -> String {
    let path = folder.display();
    format!(
        "user root;
daemon off;
worker_processes 1;
pid {path}/nginx.pid;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {path}/body;
    fastcgi_temp_path {path}/fastcgi;
    proxy_temp_path {path}/proxy;
    scgi_temp_path {path}/scgi;
    uwsgi_temp_path {path}/uwsgi;
{http}
}}
"
    )
}
