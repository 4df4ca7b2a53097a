//! Images, which clients look up before they create a machine. Every requested image exists, in one version, free of
//! charge.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug)]
pub struct Image<'a> {
    pub subscription: &'a str,
    pub location: &'a str,
    pub publisher: &'a str,
    pub offer: &'a str,
    pub sku: &'a str,
}

/// The only version of every image.
pub const IMAGE_VERSION: &str = "1.0.0";

/// Publishers of lists, each with an offer and a SKU; any other one exists as well.
const KNOWN: [(&str, &str, &str); 5] = [
    ("Canonical", "UbuntuServer", "18.04-LTS"),
    ("Debian", "debian-12", "12"),
    ("MicrosoftWindowsServer", "WindowsServer", "2022-datacenter"),
    ("RedHat", "RHEL", "9-lvm"),
    ("SUSE", "sles-15-sp5", "gen1"),
];

impl Image<'_> {
    fn base_path(&self) -> String {
        format!(
            "/Subscriptions/{}/Providers/Microsoft.Compute/Locations/{}",
            self.subscription, self.location
        )
    }

    #[must_use]
    pub fn versions(&self) -> Value {
        json!([self.version(IMAGE_VERSION)])
    }

    /// One version, under any name. It has no plan: clients would want to buy it.
    ///
    /// ```
    /// use forewarn_azure::Image;
    ///
    /// let image = Image { subscription: "s", location: "l", publisher: "p", offer: "o", sku: "k" };
    /// let version = image.version("1.2.3");
    /// assert_eq!((version["name"].as_str(), version["properties"]["plan"].is_null()), (Some("1.2.3"), true));
    /// ```
    #[must_use]
    pub fn version(&self, name: &str) -> Value {
        let Self { location, publisher, offer, sku, .. } = self;
        let system = if publisher.to_lowercase().contains("windows") { "Windows" } else { "Linux" };
        let architecture = if sku.to_lowercase().contains("arm64") { "Arm64" } else { "x64" };
        json!({
            "location": location,
            "name": name,
            "id": format!(
                "{}/Publishers/{publisher}/ArtifactTypes/VMImage/Offers/{offer}/Skus/{sku}/Versions/{name}",
                self.base_path()
            ),
            "properties": {
                "hyperVGeneration": "V1",
                "architecture": architecture,
                "replicaType": "Managed",
                "osDiskImage": { "operatingSystem": system, "sizeInGb": 30 },
                "dataDiskImages": [],
                "features": [],
                "automaticOSUpgradeProperties": { "automaticOSUpgradeSupported": true },
            },
        })
    }

    /// SKUs of an offer in lists.
    #[must_use]
    pub fn skus(&self) -> Value {
        let own = KNOWN.iter().filter(|(publisher, offer, _)| {
            publisher.eq_ignore_ascii_case(self.publisher) && offer.eq_ignore_ascii_case(self.offer)
        });
        let path = format!("Publishers/{}/ArtifactTypes/VMImage/Offers/{}/Skus", self.publisher, self.offer);
        self.list(own.map(|(_, _, sku)| *sku), &path)
    }

    /// Offers of a publisher in lists.
    #[must_use]
    pub fn offers(&self) -> Value {
        let own = KNOWN.iter().filter(|(publisher, _, _)| publisher.eq_ignore_ascii_case(self.publisher));
        let path = format!("Publishers/{}/ArtifactTypes/VMImage/Offers", self.publisher);
        self.list(own.map(|(_, offer, _)| *offer), &path)
    }

    #[must_use]
    pub fn publishers(&self) -> Value {
        self.list(KNOWN.iter().map(|(publisher, _, _)| *publisher), "Publishers")
    }

    fn list<'n>(&self, names: impl Iterator<Item = &'n str>, path: &str) -> Value {
        let shown = |name: &str| json!({ "location": self.location, "name": name, "id": format!("{}/{path}/{name}", self.base_path()) });
        names.map(shown).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IMAGE: Image<'_> =
        Image { subscription: "s", location: "l", publisher: "canonical", offer: "ubuntuserver", sku: "any" };

    #[test]
    fn versions_are_a_bare_list() {
        let versions = IMAGE.versions();
        assert_eq!(versions[0]["name"], IMAGE_VERSION);
        assert_eq!(versions[0]["properties"]["osDiskImage"]["operatingSystem"], "Linux");
        let windows = Image { publisher: "MicrosoftWindowsServer", ..IMAGE };
        assert_eq!(windows.version("1")["properties"]["osDiskImage"]["operatingSystem"], "Windows");
    }

    #[test]
    fn lists_lead_to_an_image() {
        assert_eq!(IMAGE.publishers()[0]["name"], "Canonical");
        assert_eq!(IMAGE.offers()[0]["name"], "UbuntuServer");
        let skus = IMAGE.skus();
        assert_eq!(skus[0]["name"], "18.04-LTS");
        let path = "/Publishers/canonical/ArtifactTypes/VMImage/Offers/ubuntuserver/Skus/18.04-LTS";
        assert!(skus[0]["id"].as_str().unwrap().ends_with(path));
        assert_eq!(Image { publisher: "unlisted", ..IMAGE }.offers(), json!([]));
    }
}
