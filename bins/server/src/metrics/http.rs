//! As much of HTTP/1.1 as a scrape needs: the head of a request in, a whole answer out.
//!
//! One request a connection, GET and HEAD alone, no body is ever read.

/// Whether the server is of use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Health {
    /// Sockets and store are open, players may come.
    Ready,
    /// Not yet.
    Starting,
    /// Not any more.
    Stopping,
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Page {
    /// The figures.
    Metrics,
    /// Whether the loop turns.
    Healthz,
    /// Whether players may come.
    Readyz,
}

/// A request that was understood.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// What it asks for.
    pub(crate) page: Page,
    /// GET; otherwise HEAD, which gets the same answer without its body.
    pub(crate) with_body: bool,
}

/// A request that is answered by an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refused {
    /// It is no request of HTTP/1.
    Bad,
    /// There is no such page.
    NotFound,
    /// Neither GET nor HEAD.
    Method,
    /// Its head is too long.
    TooLong,
}

/// Reads the head of a request, its empty line included.
pub(crate) fn parse(head: &[u8]) -> Result<Request, Refused> {
    let head = std::str::from_utf8(head).map_err(|_| Refused::Bad)?;
    // A line feed alone ends a line, too, and empty lines before a request are to be skipped
    // (RFC 9112, section 2.2).
    let mut lines = head.trim_start_matches(['\r', '\n']).lines();
    let mut words = lines.next().unwrap_or_default().split(' ');
    let (Some(method), Some(target), Some(version), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Refused::Bad);
    };
    let is_token =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic());
    if !is_token(method) || !target.starts_with('/') || !matches!(version, "HTTP/1.0" | "HTTP/1.1")
    {
        return Err(Refused::Bad);
    }
    let header = |line: &str| line.split_once(':').is_some_and(|(name, _)| is_token(name));
    if !lines.take_while(|line| !line.is_empty()).all(header) {
        return Err(Refused::Bad);
    }
    let path = target.split_once('?').map_or(target, |(path, _)| path);
    let page = match path {
        "/metrics" => Page::Metrics,
        "/healthz" => Page::Healthz,
        "/readyz" => Page::Readyz,
        _ => return Err(Refused::NotFound),
    };
    match method {
        "GET" | "HEAD" => Ok(Request { page, with_body: method == "GET" }),
        _ => Err(Refused::Method),
    }
}

/// The answer to a request that is none, or not ours.
pub(crate) fn refusal(why: Refused) -> Vec<u8> {
    let (status, extra) = match why {
        Refused::Bad => ("400 Bad Request", ""),
        Refused::NotFound => ("404 Not Found", ""),
        Refused::Method => ("405 Method Not Allowed", "Allow: GET, HEAD\r\n"),
        Refused::TooLong => ("431 Request Header Fields Too Large", ""),
    };
    answer(status, PLAIN, extra, &format!("{status}\n"), true)
}

/// The answer to `/healthz`: that it comes is what it says.
pub(crate) fn healthz(with_body: bool) -> Vec<u8> {
    answer("200 OK", PLAIN, "", "ok\n", with_body)
}

/// The answer to `/readyz`.
pub(crate) fn readyz(health: Health, with_body: bool) -> Vec<u8> {
    let (status, body) = match health {
        Health::Ready => ("200 OK", "ready\n"),
        Health::Starting => ("503 Service Unavailable", "starting\n"),
        Health::Stopping => ("503 Service Unavailable", "stopping\n"),
    };
    answer(status, PLAIN, "", body, with_body)
}

/// The answer to `/metrics`.
pub(crate) fn metrics(text: &str, with_body: bool) -> Vec<u8> {
    answer("200 OK", super::CONTENT_TYPE, "", text, with_body)
}

const PLAIN: &str = "text/plain; charset=utf-8";

fn answer(status: &str, kind: &str, extra: &str, body: &str, with_body: bool) -> Vec<u8> {
    let len = body.len();
    let body = if with_body { body } else { "" };
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len}\r\n\
         Cache-Control: no-store\r\n{extra}Connection: close\r\n\r\n{body}"
    )
    .into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_of_the_usual_programs_are_understood() {
        let get = |page| Ok(Request { page, with_body: true });
        let prometheus = b"GET /metrics HTTP/1.1\r\nHost: localhost:21069\r\nUser-Agent: Prometheus/3.5.0\r\n\
            Accept: application/openmetrics-text;version=1.0.0;q=0.6,text/plain;version=0.0.4;q=0.5\r\n\
            Accept-Encoding: gzip\r\nX-Prometheus-Scrape-Timeout-Seconds: 10\r\n\r\n";
        assert_eq!(parse(prometheus), get(Page::Metrics));
        assert_eq!(parse(b"GET /healthz HTTP/1.0\r\n\r\n"), get(Page::Healthz));
        assert_eq!(parse(b"GET /readyz?verbose HTTP/1.1\n\n"), get(Page::Readyz));
        assert_eq!(parse(b"\r\nGET /readyz HTTP/1.1\r\n\r\n"), get(Page::Readyz));
        let head = Request { page: Page::Metrics, with_body: false };
        assert_eq!(parse(b"HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n"), Ok(head));
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let bad: [&[u8]; 14] = [
            b"",
            b"\r\n\r\n",
            b"GET /metrics\r\n\r\n",
            b"GET /metrics HTTP/2.0\r\n\r\n",
            b"GET /metrics HTTP/1.1 x\r\n\r\n",
            b"GET  /metrics HTTP/1.1\r\n\r\n",
            b"GET metrics HTTP/1.1\r\n\r\n",
            b" /metrics HTTP/1.1\r\n\r\n",
            b"G\x07T /metrics HTTP/1.1\r\n\r\n",
            b"GET /metrics HTTP/1.1\r\nno header\r\n\r\n",
            b"GET /metrics HTTP/1.1\r\n: empty\r\n\r\n",
            b"GET /metrics HTTP/1.1\r\nna me: x\r\n\r\n",
            b"GET /\xFFmetrics HTTP/1.1\r\n\r\n",
            b"\x16\x03\x01\x02\x00\x01\x00\x01\xFC\x03\x03\n\n",
        ];
        for head in bad {
            assert_eq!(parse(head), Err(Refused::Bad), "{}", head.escape_ascii());
        }
        for target in ["/", "/metric", "/metrics/", "/METRICS", "/../metrics", "/%6Detrics"] {
            let head = format!("GET {target} HTTP/1.1\r\n\r\n");
            assert_eq!(parse(head.as_bytes()), Err(Refused::NotFound), "{target}");
        }
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "TRACE", "get"] {
            let head = format!("{method} /metrics HTTP/1.1\r\n\r\n");
            assert_eq!(parse(head.as_bytes()), Err(Refused::Method), "{method}");
        }
    }

    #[test]
    fn no_input_is_too_odd_to_be_answered() {
        let whole = b"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n";
        for len in 0..whole.len() {
            let _ = parse(&whole[..len]);
            for byte in [0, b' ', b'\n', b':', 0x80, 0xFF] {
                let mut other = whole.to_vec();
                other[len] = byte;
                let _ = parse(&other);
            }
        }
    }

    #[test]
    fn answers_are_whole_and_say_that_the_connection_ends() {
        let expected = "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain; charset=utf-8\r\n\
            Content-Length: 9\r\nCache-Control: no-store\r\nConnection: close\r\n\r\nstopping\n";
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        assert_eq!(text(readyz(Health::Stopping, true)), expected);
        let without = expected.strip_suffix("stopping\n").unwrap();
        assert_eq!(text(readyz(Health::Stopping, false)), without);
        let refused = text(refusal(Refused::Method));
        assert!(refused.starts_with("HTTP/1.1 405 Method Not Allowed\r\n"));
        assert!(refused.contains("\r\nAllow: GET, HEAD\r\n"));
        assert!(refused.ends_with("\r\n\r\n405 Method Not Allowed\n"));
        let body = "caves_players 3\n";
        assert!(text(metrics(body, true)).contains("\r\nContent-Length: 16\r\n"));
        assert!(
            text(metrics(body, true))
                .contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n")
        );
    }
}
