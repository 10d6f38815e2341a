"""How each server is configured: every one at its best setting for 64 kept connections on one core."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .errors import Unusable
from .servers import Command, Server, free_port

CONNECTIONS = 64
#: kept ones that nothing comes on
IDLE_CONNECTIONS = 10_000

FPM_CONFIG = """\
[global]
error_log = {scratch}/fpm.error.log
daemonize = no
[bench]
{user}
listen = {scratch}/fpm.sock
{owner}
listen.backlog = 1024
pm = static
pm.max_children = {children}
"""

# One nginx worker, since there is one core. As many fpm children as kept upstream connections: an idle kept connection
# holds a child, so with fewer children some requests would wait for ever.
NGINX_CONFIG = """\
{user}
worker_processes 1;
daemon off;
worker_rlimit_nofile {descriptors};
pid {scratch}/nginx.pid;
error_log {scratch}/nginx.error.log warn;
events {{ worker_connections {connections}; }}
http {{
    access_log off;
    server_tokens off;
    keepalive_requests 1000000000;
    sendfile on;
    tcp_nopush on;
    client_max_body_size 64m;
    types {{ text/plain txt; }}
    client_body_temp_path {scratch}/nginx-body;
    fastcgi_temp_path {scratch}/nginx-fastcgi;
    proxy_temp_path {scratch}/nginx-proxy;
    scgi_temp_path {scratch}/nginx-scgi;
    uwsgi_temp_path {scratch}/nginx-uwsgi;
    upstream php {{
        server unix:{scratch}/fpm.sock;
        keepalive {children};
        keepalive_requests 1000000000;
    }}
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        root {root};
        fastcgi_keep_conn on;
        location ~ \\.txt$ {{ }}
        location / {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME {root}/index.php;
            fastcgi_pass php;
        }}
        location ~ \\.php$ {{
            include /etc/nginx/fastcgi_params;
            fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
            fastcgi_pass php;
        }}
    }}
}}
"""

# prefork serves one connection per child: as many children as kept connections.
APACHE_CONFIG = """\
ServerRoot /etc/apache2
ServerName localhost
ServerTokens Prod
PidFile {scratch}/apache.pid
DefaultRuntimeDir {scratch}
ErrorLog {scratch}/apache.error.log
LogLevel warn
Listen 127.0.0.1:{port}
ListenBacklog 4096
{user}
LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule mime_module {modules}/mod_mime.so
TypesConfig /dev/null
AddType text/plain .txt
LoadModule dir_module {modules}/mod_dir.so
LoadModule php_module {php_module}
ServerLimit {children}
StartServers {children}
MinSpareServers {children}
MaxSpareServers {children}
MaxRequestWorkers {children}
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
DocumentRoot {root}
<Directory {root}>
    AllowOverride None
    Require all granted
    FallbackResource /index.php
</Directory>
<FilesMatch "\\.php$">
    SetHandler application/x-httpd-php
</FilesMatch>
"""

# Debian's defaults, said here so that a changed php.ini does not change the figures.
PHP_INI = """\
expose_php = Off
upload_max_filesize = 64M
post_max_size = 64M
opcache.enable = 1
opcache.jit = disable
display_errors = Off
"""


@dataclass(frozen=True)
class Site:
    """Where a server finds programs, pages and a place for its own files."""

    scratch: Path
    apps: Path
    surus: Path
    limit: Path


@dataclass(frozen=True)
class Peer:
    """A server that can take part."""

    name: str
    title: str
    make: Callable[["Peer", Site], Server]
    #: workloads: True for classic ones, False for the others
    serves: tuple[bool, ...] = (False, True)
    #: the name that --peers knows it by; two modes of Surus are one choice
    choice: str = ""

    def server(self, site: Site) -> Server:
        """Configured, not started."""
        return self.make(self, site)


def surus(peer: Peer, site: Site) -> Server:
    """One worker; coroutine mode by the application script, classic mode by the folder."""
    port = free_port()
    program = _program(str(site.surus), "build it: cargo build --release -p surus")
    classic = peer.serves == (True,)
    path = site.apps / "classic" if classic else site.apps / "app.php"
    argv = [program, "serve", str(path), "--listen", f"127.0.0.1:{port}", "--workers", "1"]
    argv += ["--set", "max_body=64M", "--set", "php.upload_max_filesize=64M"]
    if classic:
        argv += ["--mode", "classic"]
    return Server(peer.name, peer.title, port, [Command(argv, ready_line=r"^surus ready")], site.scratch)


def limit(peer: Peer, site: Site) -> Server:
    """Bare hyper, bench/limit."""
    port = free_port()
    program = _program(str(site.limit), "build it: cargo build --release -p surus-limit")
    command = Command([program, f"127.0.0.1:{port}"], ready_line=r"^limit ready")
    return Server(peer.name, peer.title, port, [command], site.scratch)


def nginx_fpm(peer: Peer, site: Site) -> Server:
    """nginx in front of php-fpm over a Unix socket, connections to php-fpm kept."""
    port = free_port()
    commands = nginx_and_fpm(site.scratch, site.apps / "classic", port)
    # both masters, one nginx worker, the children
    return Server(peer.name, peer.title, port, commands, site.scratch, processes=CONNECTIONS + 3)


def nginx_and_fpm(scratch: Path, folder: Path, port: int, pool: str = "") -> list[Command]:
    """Both, for the PHP files of a folder; other paths are its index.php's. `pool` is more for the pool of php-fpm."""
    nginx = _program("nginx", "apt install nginx")
    fpm = _program(_newest("/usr/sbin/php-fpm[0-9]*") or "php-fpm", "apt install php-fpm")
    values: dict[str, object] = {"scratch": scratch, "root": folder, "port": port, "children": CONNECTIONS}
    values |= {"connections": IDLE_CONNECTIONS + 1000, "descriptors": 2 * IDLE_CONNECTIONS}
    root = os.geteuid() == 0
    fpm_config = scratch / "fpm.conf"
    fpm_config.write_text(
        FPM_CONFIG.format(
            user="user = www-data\ngroup = www-data" if root else "",
            owner="listen.owner = www-data\nlisten.group = www-data" if root else "",
            **values,
        )
        + pool
    )
    nginx_config = scratch / "nginx.conf"
    nginx_config.write_text(NGINX_CONFIG.format(user="user www-data;" if root else "", **values))
    fpm_argv = [fpm, "--nodaemonize", "--fpm-config", str(fpm_config)]
    return [
        Command(fpm_argv, _php_environment(scratch), ready_socket=scratch / "fpm.sock"),
        Command([nginx, "-e", str(scratch / "nginx.error.log"), "-c", str(nginx_config)]),
    ]


def mod_php(peer: Peer, site: Site) -> Server:
    """Apache prefork with Debian's mod_php."""
    modules = "/usr/lib/apache2/modules"
    apache = _program("apache2", "apt install apache2 libapache2-mod-php")
    php_module = _newest(f"{modules}/libphp[0-9]*.so")
    if php_module is None:
        raise Unusable("mod_php is missing: apt install libapache2-mod-php")
    port = free_port()
    config = site.scratch / "apache.conf"
    user = "User www-data\nGroup www-data" if os.geteuid() == 0 else ""
    config.write_text(
        APACHE_CONFIG.format(user=user, modules=modules, php_module=php_module, **_values(site, port))
    )
    command = Command([apache, "-DFOREGROUND", "-f", str(config)], _php_environment(site.scratch))
    return Server(peer.name, peer.title, port, [command], site.scratch, processes=CONNECTIONS + 1)


PEERS = (
    Peer("nginx-fpm", "nginx + php-fpm", nginx_fpm),
    Peer("limit", "bare hyper (limit)", limit),
    Peer("surus", "Surus", surus, serves=(False,)),
    Peer("surus-classic", "Surus", surus, serves=(True,), choice="surus"),
    Peer("mod_php", "Apache mod_php", mod_php),
)


def _values(site: Site, port: int) -> dict[str, object]:
    return {"scratch": site.scratch, "root": site.apps / "classic", "port": port, "children": CONNECTIONS}


def _php_environment(scratch: Path) -> dict[str, str]:
    folder = scratch / "php.d"
    folder.mkdir(exist_ok=True)
    (folder / "bench.ini").write_text(PHP_INI)
    # The leading colon keeps Debian's own folder in front of ours.
    return {"PHP_INI_SCAN_DIR": f":{folder}"}


def _newest(pattern: str) -> str | None:
    return max(glob.glob(pattern), default=None)


def _program(name: str, remedy: str) -> str:
    found = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if found is None:
        raise Unusable(f"{name} is missing: {remedy}")
    return found
