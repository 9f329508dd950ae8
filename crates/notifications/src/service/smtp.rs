//! The dialogue with a mail server (RFC 5321), over a connection that is there already.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use baton_hooks::Secret;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use super::Failure;

/// Longest line of an answer, and most lines of one.
const LONGEST_LINE: u64 = 2048;
const MOST_LINES: usize = 64;

/// A dialogue under way.
pub(super) struct Session<S> {
    stream: BufReader<S>,
    /// What the server says it can do, in upper case.
    abilities: Vec<String>,
}

/// What the server answered.
struct Answer {
    code: u16,
    lines: Vec<String>,
}

// === impl Session ===

impl<S: AsyncRead + AsyncWrite + Unpin> Session<S> {
    /// Hears the greeting, and says who is calling.
    pub(super) async fn begin(stream: S, caller: &str) -> Result<Session<S>, Failure> {
        let mut session = Session { stream: BufReader::new(stream), abilities: Vec::new() };
        session.answer().await?.expect(220, "the greeting")?;
        session.introduce(caller).await?;
        Ok(session)
    }

    /// Says who is calling again, over the same connection made secret. What was heard before does not count.
    pub(super) async fn resume(stream: S, caller: &str) -> Result<Session<S>, Failure> {
        let mut session = Session { stream: BufReader::new(stream), abilities: Vec::new() };
        session.introduce(caller).await?;
        Ok(session)
    }

    async fn introduce(&mut self, caller: &str) -> Result<(), Failure> {
        let answer = self.command(&format!("EHLO {caller}")).await?.expect(250, "EHLO")?;
        self.abilities = answer.lines.into_iter().skip(1).map(|line| line.to_ascii_uppercase()).collect();
        Ok(())
    }

    /// Whether the server can do something.
    pub(super) fn offers(&self, ability: &str) -> bool {
        self.abilities.iter().any(|line| line.split([' ', '=']).next() == Some(ability))
    }

    /// Asks for TLS, and gives the connection back for it.
    pub(super) async fn start_tls(mut self) -> Result<S, Failure> {
        self.command("STARTTLS").await?.expect(220, "STARTTLS")?;
        // Whatever came in the clear behind the answer is somebody else's.
        if !self.stream.buffer().is_empty() {
            return Err(Failure::new("the mail server went on in the clear after STARTTLS"));
        }
        Ok(self.stream.into_inner())
    }

    /// Signs in.
    pub(super) async fn sign_in(&mut self, user: &Secret, password: &Secret) -> Result<(), Failure> {
        let ways: Vec<&str> = self
            .abilities
            .iter()
            .find_map(|line| line.strip_prefix("AUTH"))
            .map(|ways| ways.split([' ', '=']).filter(|way| !way.is_empty()).collect())
            .unwrap_or_default();
        if ways.contains(&"PLAIN") {
            let both = STANDARD.encode(format!("\0{}\0{}", user.expose(), password.expose()));
            self.command(&format!("AUTH PLAIN {both}")).await?.expect(235, "signing in")?;
        } else if ways.contains(&"LOGIN") {
            self.command("AUTH LOGIN").await?.expect(334, "signing in")?;
            self.command(&STANDARD.encode(user.expose())).await?.expect(334, "signing in")?;
            self.command(&STANDARD.encode(password.expose())).await?.expect(235, "signing in")?;
        } else {
            return Err(Failure::lasting("the mail server offers no way to sign in that is known here"));
        }
        Ok(())
    }

    /// Hands over a message. It has arrived when this returns.
    pub(super) async fn send(&mut self, from: &str, to: &str, message: &[u8]) -> Result<(), Failure> {
        self.command(&format!("MAIL FROM:<{from}>")).await?.expect(250, "the sender")?;
        let answer = self.command(&format!("RCPT TO:<{to}>")).await?;
        // 251: it is passed on.
        if answer.code != 251 {
            answer.expect(250, "the recipient")?;
        }
        self.command("DATA").await?.expect(354, "DATA")?;
        self.stream.write_all(&stuffed(message)).await.map_err(broken)?;
        self.stream.flush().await.map_err(broken)?;
        self.answer().await?.expect(250, "the message")?;
        Ok(())
    }

    /// Says good-bye. Whether it is heard does not matter.
    pub(super) async fn end(mut self) {
        let _ = self.stream.write_all(b"QUIT\r\n").await;
        let _ = self.stream.shutdown().await;
    }

    async fn command(&mut self, command: &str) -> Result<Answer, Failure> {
        self.stream.write_all(format!("{command}\r\n").as_bytes()).await.map_err(broken)?;
        self.stream.flush().await.map_err(broken)?;
        self.answer().await
    }

    async fn answer(&mut self) -> Result<Answer, Failure> {
        let garbled = || Failure::new("the mail server answered with what is no SMTP");
        let mut lines = Vec::new();
        loop {
            let mut line = Vec::new();
            (&mut self.stream).take(LONGEST_LINE).read_until(b'\n', &mut line).await.map_err(broken)?;
            if !line.ends_with(b"\n") || lines.len() >= MOST_LINES {
                return Err(garbled());
            }
            let line = String::from_utf8_lossy(&line);
            let line = line.trim_end();
            let code = line.get(..3).and_then(|code| code.parse::<u16>().ok()).ok_or_else(garbled)?;
            lines.push(line.get(4..).unwrap_or_default().to_owned());
            match line.as_bytes().get(3) {
                Some(b'-') => {}
                Some(b' ') | None => return Ok(Answer { code, lines }),
                Some(_) => return Err(garbled()),
            }
        }
    }
}

// === impl Answer ===

impl Answer {
    /// The answer, if it is the one hoped for. The server's words are not repeated: some repeat what they were told.
    fn expect(self, code: u16, what: &str) -> Result<Answer, Failure> {
        if self.code == code {
            return Ok(self);
        }
        let message = format!("the mail server refused {what} with code {}", self.code);
        Err(if self.code >= 500 { Failure::lasting(message) } else { Failure::new(message) })
    }
}

fn broken(error: std::io::Error) -> Failure {
    Failure::new(format!("the connection to the mail server broke: {}", error.kind()))
}

/// A message as it goes over the wire: a dot before every dot that begins a line, and the end.
fn stuffed(message: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(message.len() + 16);
    let mut begins_line = true;
    for &byte in message {
        if begins_line && byte == b'.' {
            out.push(b'.');
        }
        out.push(byte);
        begins_line = byte == b'\n';
    }
    if !out.ends_with(b"\r\n") {
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b".\r\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_of_a_message_can_end_it() {
        assert_eq!(stuffed(b"a\r\n.\r\n..b\r\n"), b"a\r\n..\r\n...b\r\n.\r\n");
        assert_eq!(stuffed(b".x"), b"..x\r\n.\r\n");
        assert_eq!(stuffed(b""), b"\r\n.\r\n");
    }
}
