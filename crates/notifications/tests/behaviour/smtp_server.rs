//! A small mail server on this machine, that speaks as much SMTP as a client needs, with STARTTLS.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::ServerConfig;
use rustls::crypto::ring;
use rustls_pki_types::PrivatePkcs8KeyDer;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// What the server does.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Manner {
    /// TLS from the first byte.
    Tls,
    /// STARTTLS, and signing in only after it.
    StartTls,
    /// Everything in the clear.
    Plain,
    /// STARTTLS, with words in the clear right behind its answer.
    Injecting,
    /// Takes the message, and goes away without an answer.
    Vanishing,
    /// Takes the first message, and says nothing to it until whoever sent it has gone.
    #[allow(dead_code, reason = "only tests that kill whoever sends use it")]
    Holding,
    /// Refuses recipients with this code.
    Refusing(u16),
    /// Answers lines without end.
    Endless,
}

/// A running server.
pub(crate) struct MailServer {
    pub(crate) address: SocketAddr,
    pub(crate) authority: PathBuf,
    mails: Arc<Mutex<Vec<String>>>,
    commands: Arc<Mutex<Vec<String>>>,
    _directory: tempfile::TempDir,
}

struct Hearing {
    manner: Manner,
    acceptor: TlsAcceptor,
    mails: Arc<Mutex<Vec<String>>>,
    commands: Arc<Mutex<Vec<String>>>,
}

impl MailServer {
    pub(crate) async fn start(manner: Manner) -> MailServer {
        let directory = tempfile::tempdir().expect("a directory can be made");
        let (acceptor, authority) = certified(directory.path());
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("a bound socket has an address");
        let (mails, commands) = (Arc::default(), Arc::default());
        let server = MailServer {
            address,
            authority,
            mails: Arc::clone(&mails),
            commands: Arc::clone(&commands),
            _directory: directory,
        };
        let hearing = Arc::new(Hearing { manner, acceptor, mails, commands });
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let hearing = hearing.clone();
                tokio::spawn(async move { hearing.hear(stream).await });
            }
        });
        server
    }

    /// The messages that were taken, as they came.
    pub(crate) fn mails(&self) -> Vec<String> {
        self.mails.lock().clone()
    }

    /// What was said to it, with `tls` and `clear` before.
    pub(crate) fn commands(&self) -> Vec<String> {
        self.commands.lock().clone()
    }
}

impl Hearing {
    async fn hear(&self, stream: tokio::net::TcpStream) {
        if self.manner == Manner::Tls {
            if let Ok(stream) = self.acceptor.accept(stream).await {
                self.converse(stream, true, true).await;
            }
            return;
        }
        let Some(stream) = self.converse(stream, false, true).await else { return };
        if let Ok(stream) = self.acceptor.accept(stream).await {
            self.converse(stream, true, false).await;
        }
    }

    /// Speaks until the end, or until the connection is to be secured.
    async fn converse<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
        is_secure: bool,
        greets: bool,
    ) -> Option<S> {
        let mut stream = BufReader::new(stream);
        if greets {
            say(&mut stream, "220 mail.example ready").await?;
        }
        loop {
            let mut line = String::new();
            if stream.read_line(&mut line).await.ok()? == 0 {
                return None;
            }
            let line = line.trim_end().to_owned();
            self.commands.lock().push(format!("{} {line}", if is_secure { "tls" } else { "clear" }));
            let offers_tls = !is_secure && matches!(self.manner, Manner::StartTls | Manner::Injecting);
            match line.split([' ', ':']).next().unwrap_or_default() {
                "EHLO" if self.manner == Manner::Endless => {
                    while say(&mut stream, "250-again and again").await.is_some() {}
                    return None;
                }
                "EHLO" if offers_tls => say(&mut stream, "250-mail.example\r\n250 STARTTLS").await?,
                "EHLO" => {
                    say(&mut stream, "250-mail.example\r\n250-SIZE 1000000\r\n250 AUTH LOGIN PLAIN").await?
                }
                "STARTTLS" if self.manner == Manner::Injecting => {
                    say(&mut stream, "220 go on\r\n250 AUTH PLAIN").await?;
                }
                "STARTTLS" => {
                    say(&mut stream, "220 go on").await?;
                    return Some(stream.into_inner());
                }
                "AUTH" => say(&mut stream, "235 welcome").await?,
                "MAIL" => say(&mut stream, "250 ok").await?,
                "RCPT" => match self.manner {
                    Manner::Refusing(code) => {
                        say(&mut stream, &format!("{code} <{line}> is not wanted")).await?
                    }
                    _ => say(&mut stream, "250 ok").await?,
                },
                "DATA" => {
                    say(&mut stream, "354 go on").await?;
                    let mail = read_mail(&mut stream).await?;
                    let number = {
                        let mut mails = self.mails.lock();
                        mails.push(mail);
                        mails.len()
                    };
                    if self.manner == Manner::Vanishing {
                        return None;
                    }
                    if self.manner == Manner::Holding && number == 1 {
                        let mut rest = String::new();
                        stream.read_line(&mut rest).await.ok()?;
                        return None;
                    }
                    say(&mut stream, "250 taken").await?;
                }
                "QUIT" => {
                    say(&mut stream, "221 bye").await?;
                    return None;
                }
                _ => say(&mut stream, "500 what?").await?,
            }
        }
    }
}

async fn say<S: AsyncWrite + Unpin>(stream: &mut S, line: &str) -> Option<()> {
    stream.write_all(format!("{line}\r\n").as_bytes()).await.ok()?;
    stream.flush().await.ok()
}

async fn read_mail<S: AsyncRead + Unpin>(stream: &mut BufReader<S>) -> Option<String> {
    let mut mail = String::new();
    loop {
        let mut line = String::new();
        if stream.read_line(&mut line).await.ok()? == 0 {
            return None;
        }
        if line == ".\r\n" {
            return Some(mail);
        }
        mail.push_str(line.strip_prefix('.').unwrap_or(&line));
    }
}

/// A certificate for `mail.example`, and the file of the authority that signed it.
fn certified(directory: &std::path::Path) -> (TlsAcceptor, PathBuf) {
    let authority_key = KeyPair::generate().expect("a key can be made");
    let mut params = CertificateParams::new(Vec::new()).expect("no names are good names");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = params.self_signed(&authority_key).expect("it can sign itself");
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate().expect("a key can be made");
    let params = CertificateParams::new(vec!["mail.example".to_owned()]).expect("a good name");
    let certificate = params.signed_by(&key, &issuer).expect("the authority can sign");
    let path = directory.join("ca.pem");
    std::fs::write(&path, authority.pem()).expect("a file can be written");
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("the provider knows TLS 1.2 and 1.3")
        .with_no_client_auth()
        .with_single_cert(
            vec![certificate.der().clone()],
            PrivatePkcs8KeyDer::from(key.serialize_der()).into(),
        )
        .expect("the key fits the certificate");
    (TlsAcceptor::from(Arc::new(config)), path)
}
