//! Resource ids: `/subscriptions/S/resourceGroups/G/providers/N/TYPE/NAME/TYPE/NAME`.
//!
//! Case is preserved but not significant: two ids are equal if their keys are.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::command::Site;

/// Characters of an id, and of each of its parts.
const ID_CHARS_MAX: usize = 2_048;
const PART_CHARS_MAX: usize = 260;

/// A resource group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroupId {
    pub subscription: String,
    /// The name of the group.
    pub name: String,
}

/// A resource in a group.
///
/// ```
/// use forewarn_control::resource_id::ResourceId;
///
/// let text = "/subscriptions/s/resourcegroups/G/providers/microsoft.compute/virtualMachines/Web";
/// let id = ResourceId::parse(text).unwrap();
/// assert_eq!((id.kind().as_str(), id.name()), ("microsoft.compute/virtualMachines", "Web"));
/// assert_eq!(id.key(), text.to_lowercase());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResourceId {
    pub group: GroupId,
    /// Namespace of the resource provider: `Microsoft.Compute`.
    pub namespace: String,
    /// Types and names, the outermost first; at least one.
    pub parts: Vec<(String, String)>,
}

impl GroupId {
    /// The group of a site.
    #[must_use]
    pub fn of_site(site: &Site) -> Self {
        Self { subscription: site.subscription.clone(), name: site.resource_group.clone() }
    }

    /// The group of an id: that of a resource, or of the group itself. Doubled slashes are accepted.
    #[must_use]
    pub fn containing(id: &str) -> Option<Self> {
        let mut parts = id.split('/').filter(|part| !part.is_empty());
        let is_subscription = parts.next()?.eq_ignore_ascii_case("subscriptions");
        let subscription = parts.next()?.to_owned();
        let is_group = parts.next()?.eq_ignore_ascii_case("resourcegroups");
        let name = parts.next()?.to_owned();
        (is_subscription && is_group).then_some(Self { subscription, name })
    }

    /// Lookup key: the id in lower case.
    #[must_use]
    pub fn key(&self) -> String {
        self.to_string().to_lowercase()
    }

    /// A resource of this group.
    #[must_use]
    pub fn resource(&self, namespace: &str, kind: &str, name: &str) -> ResourceId {
        let parts = vec![(kind.to_owned(), name.to_owned())];
        ResourceId { group: self.clone(), namespace: namespace.to_owned(), parts }
    }
}

impl ResourceId {
    /// Reads an id. Doubled and trailing slashes are accepted.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let parts: Vec<_> = text.split('/').filter(|part| !part.is_empty()).collect();
        let fits = text.len() <= ID_CHARS_MAX && parts.iter().all(|part| part.len() <= PART_CHARS_MAX);
        let [subscriptions, subscription, groups, group, providers, namespace, rest @ ..] = parts.as_slice()
        else {
            return None;
        };
        let is_id = subscriptions.eq_ignore_ascii_case("subscriptions")
            && groups.eq_ignore_ascii_case("resourcegroups")
            && providers.eq_ignore_ascii_case("providers");
        if !fits || !is_id || rest.is_empty() || rest.len() % 2 == 1 {
            return None;
        }
        let parts = rest.chunks_exact(2).map(|pair| (pair[0].to_owned(), pair[1].to_owned())).collect();
        let group = GroupId { subscription: (*subscription).to_owned(), name: (*group).to_owned() };
        Some(Self { group, namespace: (*namespace).to_owned(), parts })
    }

    /// Lookup key: the id in lower case.
    #[must_use]
    pub fn key(&self) -> String {
        self.to_string().to_lowercase()
    }

    /// Full type: `Microsoft.Compute/virtualMachines`.
    #[must_use]
    pub fn kind(&self) -> String {
        self.parts.iter().fold(self.namespace.clone(), |kind, (part, _)| format!("{kind}/{part}"))
    }

    /// Returns true if the id has that type, in any case.
    #[must_use]
    pub fn is(&self, kind: &str) -> bool {
        self.kind().eq_ignore_ascii_case(kind)
    }

    /// Name of the resource.
    #[must_use]
    pub fn name(&self) -> &str {
        self.parts.last().map_or("", |(_, name)| name)
    }

    /// Id of a child.
    #[must_use]
    pub fn child(&self, kind: &str, name: &str) -> Self {
        let mut child = self.clone();
        child.parts.push((kind.to_owned(), name.to_owned()));
        child
    }

    /// Id of the parent resource. None if the parent is the resource group.
    #[must_use]
    pub fn parent(&self) -> Option<Self> {
        let mut parent = self.clone();
        parent.parts.pop();
        (!parent.parts.is_empty()).then_some(parent)
    }
}

impl fmt::Display for GroupId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "/subscriptions/{}/resourceGroups/{}", self.subscription, self.name)
    }
}

impl fmt::Display for ResourceId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/providers/{}", self.group, self.namespace)?;
        self.parts.iter().try_for_each(|(kind, name)| write!(out, "/{kind}/{name}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUBNET: &str =
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/a";

    #[test]
    fn an_id_is_read_and_written_in_any_spelling() {
        let id = ResourceId::parse(SUBNET).unwrap();
        assert_eq!(id.to_string(), SUBNET);
        assert!(id.is("microsoft.network/virtualnetworks/SUBNETS"));
        assert_eq!(id.parent().unwrap().name(), "v");
        assert_eq!(id.parent().unwrap().parent(), None);
        let other = SUBNET.replace("resourceGroups", "RESOURCEGROUPS").replace("/v/", "//V/") + "/";
        assert_eq!(ResourceId::parse(&other).unwrap().key(), id.key());
        assert_eq!(id.parent().unwrap().child("subnets", "a"), id);
    }

    #[test]
    fn a_group_is_found_in_its_own_id_and_in_those_of_its_resources() {
        let group = GroupId { subscription: "s".to_owned(), name: "g".to_owned() };
        assert_eq!(GroupId::containing(SUBNET), Some(group.clone()));
        assert_eq!(GroupId::containing(&group.to_string()), Some(group.clone()));
        assert_eq!(GroupId::containing("//Subscriptions/s/RESOURCEGROUPS//g/"), Some(group));
        for other in
            ["", "/subscriptions/s/resourceGroups", "/subscriptions/s/providers/N/type/name", "/g/a/b/c"]
        {
            assert_eq!(GroupId::containing(other), None, "{other}");
        }
    }

    #[test]
    fn invalid_ids_are_rejected() {
        for text in [
            "",
            "/",
            "/subscriptions/s",
            "/subscriptions/s/resourceGroups/g",
            "/subscriptions/s/resourceGroups/g/providers/N/type",
            "/subscriptions/s/other/g/providers/N/type/name",
        ] {
            assert_eq!(ResourceId::parse(text), None, "{text}");
        }
        assert_eq!(ResourceId::parse(&format!("{SUBNET}{}", "x".repeat(PART_CHARS_MAX))), None);
    }
}
