//! TLS, as libpq's `sslmode` and `sslrootcert` say.

use std::{cell::RefCell, collections::HashMap, io, path::PathBuf, sync::Arc};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};
use tokio_rustls::{
    rustls::{
        client::{
            danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier},
            WebPkiServerVerifier,
        },
        crypto::{ring, verify_tls12_signature, verify_tls13_signature, CryptoProvider},
        pki_types::{pem::PemObject, CertificateDer, ServerName, UnixTime},
        CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore,
        SignatureScheme,
    },
    TlsConnector,
};

use crate::stream::Stream;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Mode {
    /// If the server has it.
    Prefer,
    /// Whoever it is.
    Require,
    /// Whose certificate was signed by somebody who is trusted.
    VerifyCa,
    /// The same, and it has the name that was connected to.
    VerifyFull,
}

/// What a connection string says of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Tls {
    pub(crate) mode: Mode,
    /// A file with certificates that are trusted; without it, the system's.
    pub(crate) roots: Option<PathBuf>,
}

impl Tls {
    /// None: no TLS.
    pub(crate) fn parse(mode: Option<&str>, roots: Option<String>) -> Result<Option<Self>, String> {
        let is_system = roots.as_deref() == Some("system");
        let roots = roots.filter(|path| path != "system").map(PathBuf::from);
        let mode = match mode {
            // As libpq: most names can get a certificate that the system trusts, so only the host's name says something.
            None if is_system => Mode::VerifyFull,
            Some(mode) if is_system && mode != "verify-full" => {
                return Err(format!(
                    "sslrootcert=system with sslmode={mode} protects against nobody: use verify-full"
                ))
            }
            None if roots.is_some() => {
                return Err("sslrootcert is of no use without sslmode: add sslmode=verify-full".to_owned())
            }
            None | Some("disable" | "allow") => return Ok(None),
            Some("prefer") => Mode::Prefer,
            // As libpq: who names a certificate wants it to be checked.
            Some("require") if roots.is_some() => Mode::VerifyCa,
            Some("require") => Mode::Require,
            Some("verify-ca") => Mode::VerifyCa,
            Some("verify-full") => Mode::VerifyFull,
            Some(mode) => {
                return Err(format!(
                    "sslmode={mode} is not known: there are disable, prefer, require, verify-ca and verify-full"
                ))
            }
        };
        Ok(Some(Tls { mode, roots }))
    }

    /// Asks the server for TLS, on a connection on which nothing was said.
    pub(crate) async fn begin(&self, mut stream: TcpStream, host: &str) -> io::Result<Stream> {
        // SSLRequest.
        stream
            .write_all(&[0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])
            .await?;
        // No more than this byte: what follows it is said within TLS.
        match stream.read_u8().await? {
            b'S' => {}
            b'N' if self.mode == Mode::Prefer => return Ok(Stream::Tcp(stream)),
            _ => return Err(io::Error::other("it has no TLS, and sslmode wants it")),
        }
        let name = ServerName::try_from(host.to_owned());
        let name = match name {
            Ok(name) => name,
            Err(error) if self.mode == Mode::VerifyFull => return Err(io::Error::other(error)),
            // Nobody looks at it.
            Err(_) => ServerName::try_from("server.invalid").map_err(io::Error::other)?,
        };
        let connector = TlsConnector::from(self.settings()?);
        let stream = connector.connect(name, stream).await?;
        Ok(Stream::Tls(Box::new(stream)))
    }

    /// They are made once: the system's certificates are many.
    fn settings(&self) -> io::Result<Arc<ClientConfig>> {
        thread_local! {
            static MADE: RefCell<HashMap<Tls, Arc<ClientConfig>>> = RefCell::default();
        }
        if let Some(made) = MADE.with_borrow(|made| made.get(self).cloned()) {
            return Ok(made);
        }
        let provider = Arc::new(ring::default_provider());
        let builder = ClientConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?;
        let settings = match self.mode {
            Mode::VerifyFull => builder
                .with_root_certificates(self.trusted()?)
                .with_no_client_auth(),
            mode => {
                let chain = match mode {
                    Mode::VerifyCa => Some(
                        WebPkiServerVerifier::builder_with_provider(
                            Arc::new(self.trusted()?),
                            provider.clone(),
                        )
                        .build()
                        .map_err(io::Error::other)?,
                    ),
                    _ => None,
                };
                builder
                    .dangerous()
                    .with_custom_certificate_verifier(Arc::new(AnyName { chain, provider }))
                    .with_no_client_auth()
            }
        };
        let settings = Arc::new(settings);
        MADE.with_borrow_mut(|made| made.insert(self.clone(), settings.clone()));
        Ok(settings)
    }

    fn trusted(&self) -> io::Result<RootCertStore> {
        let mut store = RootCertStore::empty();
        match &self.roots {
            Some(path) => {
                let wrong = |error: &dyn std::fmt::Display| {
                    io::Error::other(format!("sslrootcert={}: {error}", path.display()))
                };
                for certificate in
                    CertificateDer::pem_file_iter(path).map_err(|error| wrong(&error))?
                {
                    let certificate = certificate.map_err(|error| wrong(&error))?;
                    store.add(certificate).map_err(|error| wrong(&error))?;
                }
            }
            None => {
                let found = rustls_native_certs::load_native_certs();
                store.add_parsable_certificates(found.certs);
            }
        }
        if store.is_empty() {
            return Err(io::Error::other(
                "no certificates are trusted: name a file with them, sslrootcert=…",
            ));
        }
        Ok(store)
    }
}

/// Accepts certificates without their names; without a chain, any.
#[derive(Debug)]
struct AnyName {
    chain: Option<Arc<WebPkiServerVerifier>>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for AnyName {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        between: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        status: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(chain) = &self.chain else {
            return Ok(ServerCertVerified::assertion());
        };
        match chain.verify_server_cert(certificate, between, name, status, now) {
            // The name is compared last.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => Ok(ServerCertVerified::assertion()),
            verified => verified,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, certificate, signed, known)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let known = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, certificate, signed, known)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        let known = &self.provider.signature_verification_algorithms;
        known.supported_schemes()
    }
}
