//! Lines with TLS: whom they believe.
#![allow(clippy::panic, clippy::unwrap_used, reason = "a test may be blunt")]

use std::sync::Arc;

use forewarn_http_client::{HttpClient, HttpError, Limits, Request, Trust, TrustError, Url};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;

/// A server that answers one request after the other with 204; its certificate.
async fn server() -> (Url, String) {
    let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = rustls_pki_types::PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![made.cert.der().clone()], key)
        .unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://localhost:{}/told", listener.local_addr().unwrap().port());
    let acceptor = TlsAcceptor::from(Arc::new(config));
    tokio::spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else { return };
                let mut buffer = [0; 4096];
                while matches!(stream.read(&mut buffer).await, Ok(count) if count > 0) {
                    stream.write_all(b"HTTP/1.1 204 X\r\n\r\n").await.unwrap_or_default();
                }
            });
        }
    });
    (Url::parse(&url).unwrap(), made.cert.pem())
}

#[tokio::test]
async fn only_who_the_file_vouches_for_is_believed() {
    let (url, pem) = server().await;
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("ca.pem");
    std::fs::write(&file, pem).unwrap();
    let request = Request::post(url.target(), "{}");
    for trust in [Trust::file(&file), Trust::system_and_file(&file)] {
        let mut line = HttpClient::new(url.clone(), trust);
        for _ in 0..2 {
            assert_eq!(line.send(&request, Limits::default()).await.unwrap().status, 204);
        }
    }
    let missing = place.path().join("missing.pem");
    for (trust, why) in [
        (Trust::system(), ""),
        (Trust::file(&missing), "missing.pem: No such file"),
        (Trust::system_and_file(&missing), "missing.pem: No such file"),
        (Trust::file("/dev/null"), "no certificate in /dev/null"),
        (Trust::system_and_file("/dev/null"), "no certificate in /dev/null"),
    ] {
        let refused = HttpClient::new(url.clone(), trust).send(&request, Limits::default()).await;
        let Err(HttpError::Unreachable(problem)) = &refused else { panic!("{refused:?}") };
        assert!(problem.contains(why), "{problem}");
    }
}

#[tokio::test]
async fn only_who_the_list_vouches_for_is_believed() {
    let (url, pem) = server().await;
    let connect = || async { TcpStream::connect((url.host(), url.port())).await.unwrap() };
    let known = CertificateDer::from_pem_slice(pem.as_bytes()).unwrap();
    let trust = Trust::list(vec![known]);
    assert!(trust.secure(connect().await, "localhost").await.is_ok());
    let other = trust.secure(connect().await, "other.example").await;
    assert!(matches!(other, Err(TrustError::Handshake(_))), "{other:?}");
    let no_name = trust.secure(connect().await, "a b").await;
    assert!(matches!(no_name, Err(TrustError::Name(_))), "{no_name:?}");
    let nobody = Trust::list(Vec::new()).secure(connect().await, "localhost").await;
    assert!(matches!(nobody, Err(TrustError::Handshake(_))), "{nobody:?}");
    let broken = Trust::list(vec![vec![1, 2, 3].into()]).secure(connect().await, "localhost").await;
    assert!(matches!(broken, Err(TrustError::NotAuthority(_))), "{broken:?}");
}
