//! Templates: those that the Azure command line sends, and those that people write.

use forewarn_azure::template::{Context, Expanded, expand};
use forewarn_azure::{ApiVersion, ArmError};
use forewarn_control::resource_id::{GroupId, ResourceId};
use serde_json::{Value, json};

const SUBSCRIPTION: &str = "11111111-1111-1111-1111-111111111111";

/// What `az` sends, as captured.
const CAPTURED: [(&str, &str); 6] = [
    ("availability-set", include_str!("../templates/availability-set.json")),
    ("vm", include_str!("../templates/vm.json")),
    ("vm-count", include_str!("../templates/vm-count.json")),
    ("vmss-flexible", include_str!("../templates/vmss-flexible.json")),
    ("vmss-gateway", include_str!("../templates/vmss-gateway.json")),
    ("vmss-uniform", include_str!("../templates/vmss-uniform.json")),
];

/// Expands `properties` of a deployment in a group called g.
pub(crate) fn deploy(properties: &Value) -> Result<Expanded, ArmError> {
    let group = GroupId { subscription: SUBSCRIPTION.to_owned(), name: "g".to_owned() };
    expand(properties, &Context { group: &group, location: "eastus", deployment: "d" })
}

/// Expands a template without parameters of its deployment.
pub(crate) fn deploy_template(template: &Value) -> Result<Expanded, ArmError> {
    deploy(&json!({ "mode": "Incremental", "template": template }))
}

fn captured(name: &str) -> Expanded {
    let (_, text) = CAPTURED.iter().find(|(captured, _)| *captured == name).unwrap();
    let deployment: Value = serde_json::from_str(text).unwrap();
    deploy(&deployment["properties"]).unwrap()
}

/// Types and names, in the order in which they are made.
fn made(expanded: &Expanded) -> Vec<String> {
    let short = |id: &ResourceId| {
        let parts = id.parts.iter().map(|(kind, name)| format!("{kind}/{name}"));
        parts.collect::<Vec<_>>().join("/")
    };
    expanded.resources.iter().map(|declared| short(&declared.id)).collect()
}

fn body(expanded: &mut Expanded, name: &str) -> Value {
    let place = expanded.resources.iter().position(|declared| declared.id.name() == name).unwrap();
    expanded.body(place, &|_| None).unwrap()
}

fn thing(name: &str, more: &Value) -> Value {
    let mut thing = json!({ "type": "Contoso.Things/things", "apiVersion": "2024-07-01", "name": name });
    thing.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    thing
}

fn things(resources: &Value) -> Result<Expanded, ArmError> {
    deploy_template(&json!({ "resources": resources }))
}

/// promise: Z4
#[test]
fn a_scale_set_of_the_command_line_comes_after_its_network() {
    let mut expanded = captured("vmss-uniform");
    let expected = [
        "virtualNetworks/scaleVNET",
        "publicIPAddresses/scaleLBPublicIP",
        "loadBalancers/scaleLB",
        "networkSecurityGroups/scaleNSG",
        "loadBalancers/scaleLB/inboundNatRules/NatRule",
        "virtualMachineScaleSets/scale",
    ];
    assert_eq!(made(&expanded), expected);
    let balancer = format!(
        "/subscriptions/{SUBSCRIPTION}/resourceGroups/g/providers/Microsoft.Network/loadBalancers/scaleLB"
    );
    let rule = body(&mut expanded, "NatRule");
    assert_eq!(
        rule["properties"]["backendAddressPool"]["id"],
        format!("{balancer}/backendAddressPools/scaleLBBEPool")
    );
    assert_eq!(expanded.resources[5].api_version, ApiVersion::new(2026, 4, 1));
    assert_eq!(expanded.resources[5].depends_on.len(), 3);

    let set = body(&mut expanded, "scale");
    assert_eq!(set["sku"], json!({ "name": "Standard_D2s_v5", "capacity": 2 }));
    let profile = &set["properties"]["virtualMachineProfile"]["scheduledEventsProfile"];
    assert_eq!(profile["terminateNotificationProfile"]["notBeforeTimeout"], "PT10M");
    let members: Vec<_> = set.as_object().unwrap().keys().collect();
    assert_eq!(members, ["location", "tags", "properties", "sku"]);
}

/// promise: Z4
#[test]
fn the_output_of_a_scale_set_is_what_the_scale_set_shows() {
    let mut expanded = captured("vmss-flexible");
    let look = |id: &ResourceId| {
        let shown = json!({ "name": "flex", "properties": { "uniqueId": "u" } });
        id.to_string().ends_with("Microsoft.Compute/virtualMachineScaleSets/flex").then_some(shown)
    };
    let outputs = expanded.outputs(&look).unwrap();
    assert_eq!(outputs, json!({ "vmss": { "type": "Object", "value": { "uniqueId": "u" } } }));
    let error = expanded.outputs(&|_| None).unwrap_err();
    assert_eq!((error.status, error.code.as_ref()), (404, "DeploymentOutputEvaluationFailed"));
    assert_eq!(error.details[0].code, "ResourceNotFound");
}

/// promise: S4
#[test]
fn a_password_reaches_the_resource_and_nothing_that_is_shown() {
    let mut expanded = captured("vmss-gateway");
    let set = body(&mut expanded, "gate");
    assert_eq!(set["properties"]["virtualMachineProfile"]["osProfile"]["adminPassword"], "example");
    assert_eq!(expanded.parameters(), json!({ "adminPassword": { "type": "SecureString" } }));
    let gateway = body(&mut expanded, "ag");
    let listener = &gateway["properties"]["requestRoutingRules"][0]["properties"]["httpListener"]["id"];
    assert!(listener.as_str().unwrap().ends_with("/applicationGateways/ag/httpListeners/appGwHttpListener"));
}

/// promise: Z4
#[test]
fn machines_by_the_count_are_numbered() {
    let mut expanded = captured("vm-count");
    let expected = [
        "virtualNetworks/manyVNET",
        "networkSecurityGroups/manyNSG",
        "publicIPAddresses/manyPublicIP0",
        "publicIPAddresses/manyPublicIP1",
        "networkInterfaces/manyVMNic0",
        "networkInterfaces/manyVMNic1",
        "virtualMachines/many0",
        "virtualMachines/many1",
    ];
    assert_eq!(made(&expanded), expected);
    let machine = body(&mut expanded, "many1");
    let interface = &machine["properties"]["networkProfile"]["networkInterfaces"][0]["id"];
    assert!(interface.as_str().unwrap().ends_with("/networkInterfaces/manyVMNic1"));
}

/// promise: Z4
#[test]
fn one_machine_and_an_availability_set_are_read_too() {
    assert_eq!(made(&captured("vm")).last().unwrap(), "virtualMachines/web");
    assert_eq!(made(&captured("availability-set")), ["availabilitySets/avset"]);
}

#[test]
fn a_resource_comes_after_what_it_depends_on_whatever_that_is_called() {
    let id = format!("/subscriptions/{SUBSCRIPTION}/resourceGroups/G/providers/Contoso.Things/things/a");
    for called in [id.as_str(), "Contoso.Things/things/A", "A", "[resourceId('Contoso.Things/things', 'a')]"]
    {
        let resources = json!([thing("b", &json!({ "dependsOn": [called] })), thing("a", &json!({}))]);
        assert_eq!(made(&things(&resources).unwrap()), ["things/a", "things/b"], "{called}");
    }
    let error = things(&json!([thing("b", &json!({ "dependsOn": ["c"] }))])).unwrap_err();
    assert_eq!(error.code, "InvalidTemplate");
    assert!(error.message.contains("the resource 'c' is not defined in the template"), "{error}");
}

#[test]
fn a_loop_is_waited_for_as_a_whole() {
    let looped = json!({ "copy": { "name": "many", "count": "[add(1, 1)]" } });
    let mut looped = thing("[format('t{0}', copyIndex(1))]", &looped);
    looped["properties"] = json!({ "index": "[copyIndex('many')]" });
    let resources = json!([thing("last", &json!({ "dependsOn": ["many"] })), looped]);
    let mut expanded = things(&resources).unwrap();
    assert_eq!(made(&expanded), ["things/t1", "things/t2", "things/last"]);
    assert_eq!(body(&mut expanded, "t2"), json!({ "properties": { "index": 1 } }));
}

/// promise: Z4
#[test]
fn circles_are_refused() {
    let on = |other: &str| json!({ "dependsOn": [other] });
    for resources in [
        json!([thing("a", &on("b")), thing("b", &on("a"))]),
        json!([thing("a", &on("a"))]),
        json!([thing("a", &on("b")), thing("b", &on("c")), thing("c", &on("a")), thing("d", &json!({}))]),
    ] {
        let error = things(&resources).unwrap_err();
        assert!(error.message.contains("circular dependency"), "{error}");
    }
    let variables = json!({ "a": "[variables('b')]", "b": "[variables('A')]" });
    let error = deploy_template(&json!({ "variables": variables, "resources": [] })).unwrap_err();
    assert!(error.message.contains("circular"), "{error}");
}

#[test]
fn what_has_a_false_condition_is_left_out_and_not_waited_for() {
    let resources = json!([
        thing("a", &json!({ "condition": "[equals(1, 2)]", "properties": "[nonsense(]" })),
        thing("a", &json!({ "condition": true })),
        thing("b", &json!({ "dependsOn": ["a"] })),
    ]);
    assert_eq!(made(&things(&resources).unwrap()), ["things/a", "things/b"]);
    let error = things(&json!([thing("a", &json!({ "condition": "yes" }))])).unwrap_err();
    assert!(error.message.contains("condition"), "{error}");
    let error = things(&json!([thing("a", &json!({})), thing("A", &json!({}))])).unwrap_err();
    assert!(error.message.contains("defined multiple times"), "{error}");
}

#[test]
fn children_are_below_their_parent() {
    let child = json!({ "type": "parts", "apiVersion": "2024-07-01", "name": "p", "x": 1 });
    let slashed = json!({ "type": "Contoso.Things/things/parts", "apiVersion": "2024-07-01", "name": "a/q" });
    let resources = json!([slashed, thing("a", &json!({ "resources": [child] }))]);
    let mut expanded = things(&resources).unwrap();
    assert_eq!(made(&expanded), ["things/a/parts/q", "things/a", "things/a/parts/p"]);
    assert_eq!(body(&mut expanded, "a"), json!({}));
    assert_eq!(body(&mut expanded, "p"), json!({ "x": 1 }));
    for name in ["q", "a/b/q", "a/", "", "a/\u{7}"] {
        let mut wrong = slashed.clone();
        wrong["name"] = name.into();
        assert_eq!(things(&json!([wrong])).unwrap_err().code, "InvalidTemplate", "{name:?}");
    }
}

#[test]
fn what_needs_another_resource_comes_after_it_and_is_known_later() {
    let properties =
        json!({ "key": "[reference('a').key]", "all": "[reference('a', '2024-07-01', 'Full').name]" });
    let resources = json!([thing("b", &json!({ "properties": properties })), thing("a", &json!({}))]);
    let mut expanded = things(&resources).unwrap();
    assert_eq!(made(&expanded), ["things/a", "things/b"]);
    let look =
        |id: &ResourceId| (id.name() == "a").then(|| json!({ "name": "a", "properties": { "key": "k" } }));
    assert_eq!(expanded.body(1, &look).unwrap(), json!({ "properties": { "key": "k", "all": "a" } }));
    assert_eq!(expanded.body(1, &|_| None).unwrap_err().code, "ResourceNotFound");
    for written in [
        json!({ "resources": [thing("[reference('a').x]", &json!({}))] }),
        json!({ "resources": [], "variables": { "v": "[reference('a')]" } }),
        json!({ "resources": [thing("b", &json!({ "dependsOn": ["[reference('a').x]"] }))] }),
    ] {
        let error = deploy_template(&written).unwrap_err();
        assert!(error.message.contains("'reference' is not expected at this location"), "{error}");
    }
    let wrong = json!({ "properties": ["[reference('a').x]", "[nonsense()]"] });
    assert!(things(&json!([thing("a", &json!({})), thing("b", &wrong)])).is_err());
}

#[test]
fn resources_may_have_names_of_the_templates_own() {
    let resources = json!({
        "second": thing("b", &json!({ "dependsOn": ["first"], "properties": { "x": "[reference('old').y]" } })),
        "first": thing("a", &json!({})),
        "old": thing("o", &json!({ "existing": true })),
    });
    let mut expanded = things(&resources).unwrap();
    assert_eq!(made(&expanded), ["things/a", "things/b"]);
    let look = |id: &ResourceId| (id.name() == "o").then(|| json!({ "properties": { "y": 7 } }));
    assert_eq!(expanded.body(1, &look).unwrap(), json!({ "properties": { "x": 7 } }));
}

/// promise: S4
#[test]
fn parameters_are_given_or_have_defaults() {
    let template = json!({
        "parameters": {
            "name": { "type": "string", "defaultValue": "[concat('web', parameters('Number'))]", "minLength": 2 },
            "number": { "type": "int", "minValue": 1, "maxValue": 9 },
            "size": { "type": "String", "allowedValues": ["S", "L"], "defaultValue": "S" },
            "secret": { "type": "secureString", "maxLength": 7 },
        },
        "resources": [],
        "outputs": {
            "name": { "type": "string", "value": "[parameters('name')]" },
            "secret": { "type": "securestring", "value": "[parameters('secret')]" },
        },
    });
    let run = |parameters: &Value| deploy(&json!({ "template": template, "parameters": parameters }));
    let good = json!({ "NUMBER": { "value": "3" }, "secret": { "value": "hush" } });
    let mut expanded = run(&good).unwrap();
    let shown = json!({
        "name": { "type": "String", "value": "web3" },
        "number": { "type": "Int", "value": 3 },
        "size": { "type": "String", "value": "S" },
        "secret": { "type": "SecureString" },
    });
    assert_eq!(expanded.parameters(), shown);
    let outputs = expanded.outputs(&|_| None).unwrap();
    assert_eq!(
        outputs,
        json!({ "name": { "type": "String", "value": "web3" }, "secret": { "type": "SecureString" } })
    );

    for (name, value) in [
        ("number", json!({ "value": "three" })),
        ("number", json!({ "value": 0 })),
        ("number", json!({ "value": 10 })),
        ("number", json!({ "value": null })),
        ("size", json!({ "value": "M" })),
        ("name", json!({ "value": "x" })),
        ("name", json!({ "value": ["x"] })),
        ("secret", json!({ "value": "hush-hush" })),
        ("secret", json!({ "reference": { "secretName": "hush" } })),
        ("other", json!({ "value": 1 })),
    ] {
        let mut parameters = good.clone();
        parameters.as_object_mut().unwrap().shift_remove("NUMBER").filter(|_| name == "number");
        parameters["number"] = json!({ "value": 3 });
        parameters[name] = value;
        let error = run(&parameters).unwrap_err();
        assert_eq!((error.status, error.code.as_ref()), (400, "InvalidTemplate"), "{name}");
        assert!(error.message.contains(name) && !error.message.contains("hush"), "{error}");
    }
}

#[test]
fn a_given_value_is_never_an_expression() {
    let template = json!({
        "parameters": { "text": { "type": "string" } },
        "resources": [],
        "outputs": { "text": { "type": "string", "value": "[parameters('text')]" } },
    });
    let parameters = json!({ "text": { "value": "[nonsense()]" } });
    let mut expanded = deploy(&json!({ "template": template, "parameters": parameters })).unwrap();
    assert_eq!(expanded.outputs(&|_| None).unwrap()["text"]["value"], "[nonsense()]");
}

#[test]
fn what_is_no_deployment_for_here_is_refused() {
    for (properties, message) in [
        (json!({}), "no template"),
        (json!({ "template": [] }), "no template"),
        (json!({ "template": {}, "mode": "Complete" }), "incremental"),
        (json!({ "templateLink": { "uri": "x" }, "template": {} }), "linked templates"),
        (json!({ "template": { "functions": [{}] } }), "'functions'"),
        (json!({ "template": { "resources": 1 } }), "a list"),
        (json!({ "template": { "resources": [1] } }), "an object"),
        (json!({ "template": { "resources": [{}] } }), "'type'"),
        (json!({ "template": { "parameters": { "a": { "type": "blob" } } } }), "the type of 'a'"),
        (
            json!({ "template": { "resources": [thing("a", &json!({ "apiVersion": "new" }))] } }),
            "api-version",
        ),
        (json!({ "template": { "resources": [thing("a", &json!({ "resourceGroup": "h" }))] } }), "own group"),
        (
            json!({ "template": { "resources": [
                { "type": "Microsoft.Resources/deployments", "apiVersion": "2022-09-01", "name": "d" },
            ] } }),
            "nested templates",
        ),
    ] {
        let error = deploy(&properties).unwrap_err();
        assert!(error.status == 400 && error.message.contains(message), "{error}");
    }
}
