//! Writes the status and the counters of the seats in Prometheus' text format.

use std::fmt::Write as _;

use serde_json::Value;

use crate::board::Tally;

/// Of what all workers share: name, key in the status, what it is.
const SHARED_MEMORY: [(&str, &str, &str); 7] = [
    (
        "surus_shared_memory_bytes",
        "bytes",
        "Shared memory that values may use.",
    ),
    (
        "surus_shared_memory_used_bytes",
        "used_bytes",
        "Shared memory that values use.",
    ),
    (
        "surus_shared_memory_kept_bytes",
        "kept_bytes",
        "What values use that are never removed to make room.",
    ),
    (
        "surus_shared_memory_entries",
        "entries",
        "Values in shared memory.",
    ),
    (
        "surus_shared_memory_hits_total",
        "hits",
        "Reads that have found a value.",
    ),
    (
        "surus_shared_memory_misses_total",
        "misses",
        "Reads that have found none.",
    ),
    (
        "surus_shared_memory_evictions_total",
        "evictions",
        "Values that were removed to make room.",
    ),
];

pub(crate) fn text(status: &Value, tallies: &[Tally]) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, lines: Vec<(String, f64)>| {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
        for (labels, value) in lines {
            let _ = writeln!(text, "{name}{labels} {value}");
        }
    };
    let seats = || {
        tallies
            .iter()
            .enumerate()
            .map(|(at, tally)| (at + 1, tally))
    };
    let responses = seats().flat_map(|(seat, tally)| {
        let line = move |(class, count)| {
            (
                format!("{{worker=\"{seat}\",code=\"{class}xx\"}}"),
                count as f64,
            )
        };
        tally.classes().map(line).collect::<Vec<_>>()
    });
    family(
        "surus_responses_total",
        "counter",
        "Responses, by worker and class of their status.",
        responses.collect(),
    );
    let refusals = seats().flat_map(|(seat, tally)| {
        let line = move |(why, count)| {
            let labels = format!("{{worker=\"{seat}\",reason=\"{why}\"}}");
            (labels, count as f64)
        };
        tally.refusals().map(line).collect::<Vec<_>>()
    });
    family(
        "surus_refused_total",
        "counter",
        "What the edge has refused without the application, by worker and reason.",
        refusals.collect(),
    );
    let gauges = [
        (
            "surus_requests_in_flight",
            "in_flight",
            "Requests that PHP has not finished.",
        ),
        (
            "surus_parked_requests",
            "parked",
            "Requests that wait, or were interrupted.",
        ),
        (
            "surus_websockets",
            "websockets",
            "WebSockets that are open.",
        ),
        (
            "surus_pusher_connections",
            "pusher_connections",
            "Connections of the Pusher protocol that are open.",
        ),
        (
            "surus_websocket_messages_received_total",
            "websocket_messages_received",
            "Messages of their clients.",
        ),
        (
            "surus_websocket_messages_sent_total",
            "websocket_messages_sent",
            "Messages to their clients.",
        ),
        (
            "surus_event_streams",
            "event_streams",
            "Event streams of channels that are open.",
        ),
        (
            "surus_channels",
            "channels",
            "Channels with subscribers or members, as this worker knows them.",
        ),
        (
            "surus_channel_subscriptions",
            "channel_subscriptions",
            "Subscriptions of WebSockets and event streams.",
        ),
        (
            "surus_channel_members",
            "channel_members",
            "Members of all channels, as this worker knows them.",
        ),
        (
            "surus_publications_total",
            "publications",
            "Publications of this worker.",
        ),
        (
            "surus_publications_delivered_total",
            "publications_delivered",
            "Publications to subscribers of this worker, counted for each.",
        ),
        (
            "surus_publications_missed_total",
            "publications_missed",
            "Times that subscribers of this worker had to come again because something was lost.",
        ),
        (
            "surus_resident_bytes",
            "rss_bytes",
            "Resident memory, what is shared included.",
        ),
        (
            "surus_php_memory_bytes",
            "php_memory_bytes",
            "Memory of the application's isolate.",
        ),
        (
            "surus_blocking_calls_total",
            "blocking_calls_total",
            "Calls that have blocked the event loop for longer than blocking_threshold.",
        ),
        (
            "surus_blocking_seconds_total",
            "blocking_s",
            "How long the event loop was blocked by them.",
        ),
        (
            "surus_uptime_seconds",
            "uptime_s",
            "Since the worker was started.",
        ),
        (
            "surus_restarts_total",
            "restarts",
            "Workers that were replaced in this seat.",
        ),
    ];
    for (name, key, help) in gauges {
        let workers = status["workers"].as_array().into_iter().flatten();
        let lines = workers.filter_map(|worker| {
            // A seat that waits for its next process has none.
            let pid = worker["pid"].as_u64();
            let pid = pid.map_or_else(String::new, |pid| pid.to_string());
            let labels = format!("{{worker=\"{}\",pid=\"{pid}\"}}", worker["worker"]);
            Some((labels, worker[key].as_f64()?))
        });
        let kind = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        family(name, kind, help, lines.collect());
    }
    pools(status, &mut family);
    let lines = ["error", "access"].map(|log| {
        let value = status["log_lines_dropped"][log].as_f64().unwrap_or(0.0);
        (format!("{{log=\"{log}\"}}"), value)
    });
    family(
        "surus_log_lines_dropped",
        "counter",
        "Lines of logs that could not be written.",
        lines.to_vec(),
    );
    for (name, key, help) in SHARED_MEMORY {
        let Some(value) = status["shared_memory"][key].as_f64() else {
            continue;
        };
        let kind = if name.ends_with("_total") {
            "counter"
        } else {
            "gauge"
        };
        family(name, kind, help, vec![(String::new(), value)]);
    }
    let states = ["waiting", "delayed", "running", "failed"].map(|state| {
        let value = status["jobs"][state].as_f64().unwrap_or(0.0);
        (format!("{{state=\"{state}\"}}"), value)
    });
    family(
        "surus_jobs",
        "gauge",
        "Jobs of queues, by what they do.",
        states.to_vec(),
    );
    let jobs = |key: &str| vec![(String::new(), status["jobs"][key].as_f64().unwrap_or(0.0))];
    family(
        "surus_jobs_done_total",
        "counter",
        "Jobs that were done since the process that has them was started.",
        jobs("done"),
    );
    family(
        "surus_jobs_bytes",
        "gauge",
        "Memory of the jobs of queues; queue_size bounds it.",
        jobs("bytes"),
    );
    for result in ["done", "failed"] {
        let value = status["reloads"][result].as_f64().unwrap_or(0.0);
        let name = format!("surus_reloads_{result}_total");
        family(&name, "counter", "Reloads.", vec![(String::new(), value)]);
    }
    let name = "surus_request_duration_seconds";
    let _ = writeln!(
        text,
        "# HELP {name} From a request's head to its response's.\n# TYPE {name} histogram"
    );
    for (seat, tally) in tallies
        .iter()
        .enumerate()
        .map(|(at, tally)| (at + 1, tally))
    {
        let (buckets, count, sum) = tally.histogram();
        for (bound, below) in buckets {
            let _ = writeln!(
                text,
                "{name}_bucket{{worker=\"{seat}\",le=\"{bound}\"}} {below}"
            );
        }
        let _ = writeln!(
            text,
            "{name}_bucket{{worker=\"{seat}\",le=\"+Inf\"}} {count}"
        );
        let _ = writeln!(
            text,
            "{name}_count{{worker=\"{seat}\"}} {count}\n{name}_sum{{worker=\"{seat}\"}} {sum}"
        );
    }
    text
}

/// Of connections: name, key in the status, kind, what it is.
const POOLS: [(&str, &str, &str, &str); 6] = [
    (
        "surus_pool_connections_in_use",
        "in_use",
        "gauge",
        "Connections of a pool that requests use.",
    ),
    (
        "surus_pool_connections_idle",
        "idle",
        "gauge",
        "Connections of a pool that nobody uses.",
    ),
    (
        "surus_pool_waiting",
        "waiting",
        "gauge",
        "Requests that wait for a connection of a pool.",
    ),
    (
        "surus_pool_resets_total",
        "resets",
        "counter",
        "Connections that were given back to a pool, and cleaned.",
    ),
    (
        "surus_pool_dropped_total",
        "dropped",
        "counter",
        "Connections that were lost, or could not be cleaned.",
    ),
    (
        "surus_pool_closed_total",
        "closed",
        "counter",
        "Connections that were closed because they were unused or old.",
    ),
];

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}

fn pools(status: &Value, family: &mut impl FnMut(&str, &str, &str, Vec<(String, f64)>)) {
    for (name, key, kind, help) in POOLS {
        let workers = status["workers"].as_array().into_iter().flatten();
        let lines = workers.flat_map(|worker| {
            let pools = worker["pools"].as_array().into_iter().flatten();
            pools.filter_map(|pool| {
                let text = |key: &str| escaped(pool[key].as_str().unwrap_or_default());
                let labels = format!(
                    "{{worker=\"{}\",kind=\"{}\",address=\"{}\"}}",
                    worker["worker"],
                    text("kind"),
                    text("address")
                );
                Some((labels, pool[key].as_f64()?))
            })
        });
        let lines: Vec<_> = lines.collect();
        if !lines.is_empty() {
            family(name, kind, help, lines);
        }
    }
}
