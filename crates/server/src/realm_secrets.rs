//! Secrets that the servers of a realm share, so that clients need not care which server answers: keys of extensions,
//! and the authority of certificates that the servers sign themselves.

use std::collections::BTreeSet;
use std::path::Path;

use forewarn_lifecycle::Name;

use crate::api_listener::ApiListener;
use crate::control_handle::ControlHandle;
use crate::extension::HttpExtension;
use crate::start_error::StartError;
use crate::tls::{AuthorityFiles, Source};

/// Bytes of the secret of an extension.
const EXTENSION_SECRET_BYTES: usize = 32;

/// Name of the authority of self-signed certificates.
const AUTHORITY: &str = "tls-authority";

/// The secret of an extension, equal on every server of the realm. None outside of a realm.
pub(crate) async fn extension_secret(
    control: &ControlHandle,
    extension: &str,
) -> Result<Option<Vec<u8>>, StartError> {
    let mut new = [0; EXTENSION_SECRET_BYTES];
    getrandom::fill(&mut new).map_err(|error| StartError::Realm(error.into()))?;
    control.realm_secret(&format!("extension-{extension}"), &new).await
}

/// In a realm, replaces the authorities in the directories of listeners by the one of the realm: a client that trusts one
/// server trusts all of them. The authority of the first server becomes the one of the realm.
pub(crate) async fn share_authority(
    control: &ControlHandle,
    api: &[ApiListener],
    extensions: &[HttpExtension],
) -> Result<(), StartError> {
    if control.realm_name().is_none() {
        return Ok(());
    }
    let api = api.iter().filter_map(ApiListener::certificate_source);
    let sources =
        api.chain(extensions.iter().filter_map(|one| one.listen.as_ref().map(|(_, source)| source)));
    let directories: BTreeSet<&Path> = sources.filter_map(authority_directory).collect();
    for directory in directories {
        let own = AuthorityFiles::load_or_create(directory)?;
        let Some(shared) = control.realm_secret(AUTHORITY, own.to_secret().as_bytes()).await? else {
            continue;
        };
        let shared = AuthorityFiles::from_secret(&shared).map_err(StartError::Realm)?;
        if shared != own {
            tracing::info!(directory = %directory.display(), "using the certificate authority of the realm");
            shared.write(directory)?;
        }
    }
    Ok(())
}

fn authority_directory(source: &Source) -> Option<&Path> {
    match source {
        Source::SelfSigned { directory, .. } => Some(directory),
        Source::Files { .. } => None,
    }
}

impl ControlHandle {
    /// A secret of the realm, which becomes `new` if it does not exist. None outside of a realm.
    async fn realm_secret(&self, name: &str, new: &[u8]) -> Result<Option<Vec<u8>>, StartError> {
        let Some(realm) = self.realm() else { return Ok(None) };
        let name = Name::new(name).map_err(|error| StartError::Realm(error.into()))?;
        let secret = realm.realm.join_secret(&name, new).await;
        let secret = secret.map_err(|error| StartError::Realm(error.into()))?;
        Ok(Some(secret.into_value().to_vec()))
    }
}
