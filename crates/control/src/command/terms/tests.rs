//! Windows, terms and selections of hosts in their written form.

use super::*;

#[test]
fn a_window_is_read_as_people_write_it_and_shown_so() {
    for (text, shown) in [
        ("22:00-06:00", "22:00-06:00"),
        ("daily 22:00-06:00 UTC", "22:00-06:00"),
        ("mon,tue,wed,thu,fri 22:00-06:00 +01:00", "mon-fri 22:00-06:00 +01:00"),
        ("sun,mon,tue,wed,sat 01:00-02:00", "mon-wed,sat,sun 01:00-02:00"),
        ("Sat,sun 00:00-24:00 -03:30", "sat,sun 00:00-00:00 -03:30"),
        ("sat-mon 01:00-02:00", "mon,sat,sun 01:00-02:00"),
        ("sat,sun 22:00-04:00 Europe/Berlin", "sat,sun 22:00-04:00 Europe/Berlin"),
        ("22:00-04:00 Etc/GMT+3", "22:00-04:00 Etc/GMT+3"),
    ] {
        let window: WindowEntry = text.parse().unwrap();
        assert_eq!(window.to_string(), shown);
        assert_eq!(shown.parse::<WindowEntry>().as_ref(), Ok(&window));
        let json = serde_json::to_string(&window).unwrap();
        assert_eq!(serde_json::from_str::<WindowEntry>(&json).unwrap(), window);
    }
}

#[test]
fn invalid_windows_are_rejected() {
    for wrong in [
        "",
        "mon",
        "25:00-26:00",
        "24:00-01:00",
        "22:60-23:00",
        "2:00-3:00",
        "22:00",
        "mun 22:00-23:00",
        "mon- 22:00-23:00",
        "22:00-23:00 +15:00",
        "22:00-23:00 01:00",
        "22:00-23:00 +01:00 x",
        "22:00-23:00 ö",
        "22:00-23:00 ../passwd",
        "22:00-23:00 Europe/",
    ] {
        assert!(wrong.parse::<WindowEntry>().is_err(), "{wrong}");
    }
}

#[test]
fn absent_terms_keep_their_value() {
    let some: TermsEntry =
        serde_json::from_str(r#"{"at_once":3,"tenant_share":25,"windows":["22:00-06:00"]}"#).unwrap();
    let terms = some.apply(&RolloutTerms::default()).unwrap();
    assert_eq!(TermsEntry::default().apply(&terms), Ok(terms.clone()));
    assert_eq!(TermsEntry::from(&terms).apply(&RolloutTerms::default()), Ok(terms.clone()));
    let none: TermsEntry =
        serde_json::from_str(r#"{"at_once":0,"tenant_share":100,"windows":"any","stop_after":0}"#).unwrap();
    let none = none.apply(&terms).unwrap();
    assert_eq!(none, RolloutTerms { stop_after: None, ..RolloutTerms::default() });
    let nothing = TermsEntry { tenant_share: Some(0), ..TermsEntry::default() };
    assert_eq!(nothing.apply(&terms), Err(TermsError::Share(0)));
}

#[test]
fn hosts_are_named_or_all_or_those_of_a_zone() {
    let read = |json: &str| serde_json::from_str::<HostSelection>(json).unwrap();
    assert_eq!(read(r#""all""#), HostSelection::Every(AllWord::All));
    assert_eq!(read(r#"{"zone":2}"#), HostSelection::Zone(ZoneSelection { zone: 2 }));
    assert_eq!(read(r#"["h1"]"#), HostSelection::Names(vec!["h1".to_owned()]));
    assert!(serde_json::from_str::<HostSelection>(r#""every""#).is_err());
}
