//! A model server that answers by what it is asked, whatever was asked before: it puts word N into line 2, one in ten
//! wrongly, and fails as it is told to.

use std::collections::HashMap;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use super::{calls, read_request, words};

/// How a server can fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    RateLimit,
    Internal,
    Unavailable,
    Hang,
    Stall,
    Reset,
    Garbage,
    Truncated,
    Huge,
    Drip,
    /// The request is refused as such: not to be tried again.
    Refused,
}

impl Fault {
    /// Those of infrastructure.
    pub(crate) const ALL: [Fault; 10] = [
        Fault::RateLimit,
        Fault::Internal,
        Fault::Unavailable,
        Fault::Hang,
        Fault::Stall,
        Fault::Reset,
        Fault::Garbage,
        Fault::Truncated,
        Fault::Huge,
        Fault::Drip,
    ];
}

pub(crate) struct Scripted {
    pub(crate) url: String,
    answered: Arc<AtomicUsize>,
    heads: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    /// `fault` is asked with the number of each request, from 0.
    pub(crate) fn start(fault: impl Fn(usize) -> Option<Fault> + Send + Sync + 'static) -> Self {
        Self::answering(fault, |number, _| number % 10 != 9)
    }

    /// `right` says whether the word of this number is put in as asked; it is told how often that was asked before.
    pub(crate) fn answering(
        fault: impl Fn(usize) -> Option<Fault> + Send + Sync + 'static,
        right: impl Fn(usize, usize) -> bool + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("address"));
        let answered = Arc::new(AtomicUsize::new(0));
        let heads = Arc::new(Mutex::new(Vec::new()));
        let (count, seen) = (Arc::clone(&answered), Arc::clone(&heads));
        let (fault, right) = (Arc::new(fault), Arc::new(right));
        let times: Arc<Mutex<HashMap<usize, usize>>> = Arc::default();
        let asked = Arc::new(AtomicUsize::new(0));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (count, seen, fault, asked) =
                    (Arc::clone(&count), Arc::clone(&seen), Arc::clone(&fault), Arc::clone(&asked));
                let (right, times) = (Arc::clone(&right), Arc::clone(&times));
                std::thread::spawn(move || {
                    let Some((post, head, body)) = read_request(&stream) else {
                        return;
                    };
                    if !post {
                        return send(&stream, 404, "", &json!({ "error": { "message": "not here" } }));
                    }
                    seen.lock().expect("lock").push(head);
                    match fault(asked.fetch_add(1, Ordering::SeqCst)) {
                        Some(fault) => fail(&stream, fault),
                        None => {
                            let body = serde_json::from_slice(&body).expect("JSON");
                            send(
                                &stream,
                                200,
                                "",
                                &answer(&body, |number| {
                                    let mut times = times.lock().expect("lock");
                                    let before = times.entry(number).or_default();
                                    *before += 1;
                                    right(number, *before - 1)
                                })["json"],
                            );
                            count.fetch_add(1, Ordering::SeqCst);
                        }
                    }
                });
            }
        });
        Scripted { url, answered, heads }
    }

    /// How many good answers were given.
    pub(crate) fn answered(&self) -> usize {
        self.answered.load(Ordering::SeqCst)
    }

    pub(crate) fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("lock").clone()
    }
}

/// The edit, or the end where it was made.
fn answer(body: &Value, right: impl Fn(usize) -> bool) -> Value {
    let messages = body["messages"].as_array().expect("messages");
    if messages.iter().any(|message| message["role"] == "tool") {
        return words("Done.");
    }
    let task = messages.iter().find(|message| message["role"] == "user").expect("a task");
    let task = task["content"].as_str().expect("text");
    let number: usize = task.split_whitespace().find_map(|word| word.parse().ok()).expect("a number");
    let text = if right(number) { format!("word {number}") } else { "another".to_owned() };
    calls(&[("edit_file", json!({ "path": "f.txt", "mode": "replace", "line": 2, "content": text }))])
}

fn send(mut stream: &TcpStream, status: u16, headers: &str, body: &Value) {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n",
        body.len()
    );
    // A client that has gone is the test's business.
    let _ = stream.write_all((head + &body).as_bytes());
}

fn fail(mut stream: &TcpStream, fault: Fault) {
    let good = words("Done.")["json"].to_string();
    let head = |length: usize| {
        format!(
            "HTTP/1.1 200 X\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
        )
    };
    // Until the client gives up.
    let wait = || {
        let mut rest = [0; 64];
        while (&mut &*stream).read(&mut rest).is_ok_and(|count| count > 0) {}
    };
    let error = |text: &str| json!({ "error": { "message": text } });
    match fault {
        Fault::RateLimit => send(stream, 429, "Retry-After: 0\r\n", &error("slow down")),
        Fault::Internal => send(stream, 500, "", &error("something broke")),
        Fault::Unavailable => send(stream, 503, "", &error("overloaded")),
        Fault::Refused => send(stream, 400, "", &error("no such thing here")),
        Fault::Hang => wait(),
        Fault::Stall => {
            let _ = stream.write_all((head(good.len()) + &good[..good.len() / 2]).as_bytes());
            wait();
        }
        Fault::Reset => {
            let _ = stream.write_all((head(good.len()) + &good[..good.len() / 2]).as_bytes());
            let _ = stream.shutdown(Shutdown::Both);
        }
        Fault::Garbage => {
            let _ = stream.write_all((head(5) + "\u{1}\u{2}<a>").as_bytes());
        }
        Fault::Truncated => {
            let half = &good[..good.len() / 2];
            let _ = stream.write_all((head(half.len()) + half).as_bytes());
        }
        Fault::Huge => {
            let _ =
                stream.write_all(b"HTTP/1.1 200 X\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n\"");
            let piece = vec![b'x'; 1 << 20];
            for _ in 0..100 {
                if stream.write_all(&piece).is_err() {
                    break;
                }
            }
        }
        Fault::Drip => {
            let _ = stream.write_all(head(good.len()).as_bytes());
            for byte in good.as_bytes() {
                if stream.write_all(&[*byte]).is_err() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(50));
            }
        }
    }
}
