//! The language of deployment templates: from a template and its parameters to the resources that it declares, in the
//! order in which they are made, and to its outputs.
//!
//! ```text
//!   template, parameters ──expand──▶ Expanded ──body──▶ what a PUT of each resource would send
//!                                       └────outputs──▶ what the deployment gives back
//! ```
//!
//! Nothing is made here and nothing is looked up: whoever carries a deployment out shows resources through a closure.
//! Templates come from strangers. Everything in them has a limit, also what they make of themselves: sizes, depths, counts
//! and the effort as a whole. What is secret is in no message and in nothing that is shown.
//!
//! Left out on purpose: templates that deploy templates, links to templates, functions of the template's own, other scopes
//! than the group, and functions whose result is another one each time.

mod evaluate;
mod functions;
mod lexer;
mod limits;
mod order;
mod parameters;
mod parser;
mod relaxed;
mod resources;
mod scope;
mod trouble;

use serde_json::{Map, Value};

pub use self::relaxed::read;

use self::limits::{EFFORT_MAX, OUTPUTS_MAX, TEMPLATE_WEIGHT_MAX};
use self::parameters::{Kind, Parameter, members, parameters, shown};
use self::resources::{Body, Presence, Survey};
use self::scope::{Ground, Look, Scope, Source, Space, Turn, weigh};
use self::trouble::{Trouble, refusal};
use super::{ApiVersion, ArmError};
use forewarn_control::resource_id::{GroupId, ResourceId};

/// Where a template is deployed.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The group it is deployed to.
    pub group: &'a GroupId,
    /// Where the group is.
    pub location: &'a str,
    /// What the deployment is called.
    pub deployment: &'a str,
}

/// What a template comes to.
#[derive(Clone, Debug)]
pub struct Expanded {
    /// Its resources, each after what it depends on.
    pub resources: Vec<Declared>,
    parameters: Vec<Parameter>,
    outputs: Value,
    ground: Ground,
    effort: u64,
    /// What is left of the effort for the outputs.
    effort_of_outputs: u64,
}

/// A resource that a template declares.
#[derive(Clone, Debug)]
pub struct Declared {
    /// Which one.
    pub id: ResourceId,
    /// The version that its body is written for.
    pub api_version: ApiVersion,
    /// What it comes after, if that is in the template too.
    pub depends_on: Vec<ResourceId>,
    body: Body,
}

/// What a template comes to, given `properties` of a deployment: `mode`, `template` and `parameters`.
///
/// # Errors
/// When it is not a template, or one that asks for too much.
///
/// ```
/// use forewarn_azure::template;
/// use forewarn_control::resource_id::GroupId;
/// use serde_json::json;
///
/// let group = GroupId { subscription: "s".to_owned(), name: "g".to_owned() };
/// let context = template::Context { group: &group, location: "eastus", deployment: "d" };
/// let properties = json!({ "mode": "Incremental", "template": { "resources": [{
///     "type": "Microsoft.Compute/availabilitySets",
///     "apiVersion": "2025-04-01",
///     "name": "[concat('web', '-', 'set')]",
///     "location": "[resourceGroup().location]",
/// }] } });
///
/// let mut expanded = template::expand(&properties, &context)?;
/// assert_eq!(expanded.resources[0].id.name(), "web-set");
/// assert_eq!(expanded.body(0, &|_| None)?, json!({ "location": "eastus" }));
/// # Ok::<_, forewarn_azure::ArmError>(())
/// ```
pub fn expand(properties: &Value, context: &Context<'_>) -> Result<Expanded, ArmError> {
    let template = check(properties)?;
    let (parameters, sources) = parameters(&template["parameters"], &properties["parameters"])?;
    let mut ground = Ground {
        group: context.group.clone(),
        location: context.location.to_owned(),
        deployment: context.deployment.to_owned(),
        content_version: template["contentVersion"].as_str().unwrap_or("1.0.0.0").to_owned(),
        names: sources.into_iter().chain(variables(&template["variables"])?).collect(),
        resources: std::collections::BTreeMap::new(),
    };
    let (names, effort) = settle(&ground, &parameters)?;
    ground.names = names;
    let (resources, effort) = declare(&mut ground, &template["resources"], effort)?;
    let outputs = template["outputs"].clone();
    Ok(Expanded { resources, parameters, outputs, ground, effort, effort_of_outputs: EFFORT_MAX })
}

/// The template, if it is one that can be deployed here.
fn check(properties: &Value) -> Result<&Value, ArmError> {
    let mode = properties["mode"].as_str().unwrap_or("Incremental");
    if !mode.eq_ignore_ascii_case("incremental") {
        let message = "a deployment is incremental here: it takes nothing away";
        return Err(ArmError::invalid("mode", message));
    }
    if ["templateLink", "parametersLink"].iter().any(|link| !properties[*link].is_null()) {
        return Err(refusal("templates and parameters are not fetched here: send them with the deployment"));
    }
    let template = &properties["template"];
    if !template.is_object() {
        return Err(refusal("the deployment has no template"));
    }
    for unknown in ["functions", "imports", "extensions"] {
        let is_there = template[unknown].as_array().is_some_and(|list| !list.is_empty())
            || template[unknown].as_object().is_some_and(|members| !members.is_empty());
        if is_there {
            return Err(refusal(format!("'{unknown}' of a template are not known here")));
        }
    }
    let weight = weigh(template).and_then(|weight| Ok(weight + weigh(&properties["parameters"])?));
    if weight.map_err(|trouble| trouble.here("template"))? > TEMPLATE_WEIGHT_MAX {
        return Err(refusal("the template is too large"));
    }
    Ok(template)
}

/// Variables, and lists that loops make of them.
fn variables(written: &Value) -> Result<Vec<parameters::Named>, ArmError> {
    let mut sources = Vec::new();
    for (name, written) in members(written, "variables")? {
        if let ("copy", Value::Array(loops)) = (name.as_str(), written) {
            for entry in loops.iter().take(limits::NAMES_MAX) {
                let name = entry["name"].as_str().ok_or_else(|| refusal("a loop has no name"))?;
                sources.push(((Space::Variable, name.to_lowercase()), Source::Loop(entry.clone())));
            }
            continue;
        }
        sources.push(((Space::Variable, name.to_lowercase()), Source::Written(written.clone())));
    }
    Ok(sources)
}

/// Parameters and variables by name.
type Names = std::collections::BTreeMap<(Space, String), Source>;

/// All parameters and variables with their values, and what is left of the effort.
fn settle(ground: &Ground, parameters: &[Parameter]) -> Result<(Names, u64), ArmError> {
    let scope = Scope::new(ground, None);
    let mut names = Names::new();
    for (space, name) in ground.names.keys() {
        let value = scope.named(*space, name).map_err(|trouble| trouble.here(name))?;
        names.insert((*space, name.clone()), Source::Given(value));
    }
    for parameter in parameters {
        let value = scope.named(Space::Parameter, &parameter.name);
        parameter.check(&value.map_err(|trouble| trouble.here(&parameter.name))?)?;
    }
    Ok((names, scope.effort()))
}

/// The resources in their order, and what is left of the effort.
fn declare(ground: &mut Ground, written: &Value, effort: u64) -> Result<(Vec<Declared>, u64), ArmError> {
    let (found, effort) = {
        let scope = Scope::new(ground, None).with_effort(effort);
        let mut survey = Survey { scope: &scope, found: Vec::new() };
        survey.all(written, None, None).map_err(|trouble| trouble.here("resources"))?;
        (survey.found, scope.effort())
    };
    let index = order::index(&found)?;
    let declared = order::order(&found, &index)?
        .into_iter()
        .filter(|(place, _)| found[*place].presence == Presence::Wanted)
        .map(|(place, before)| {
            let resource = &found[place];
            Declared {
                id: resource.id.clone(),
                api_version: resource.version,
                depends_on: before.into_iter().map(|before| found[before].id.clone()).collect(),
                body: resource.body.clone(),
            }
        })
        .collect();
    let ids = |places: Vec<usize>| places.into_iter().map(|place| found[place].id.clone()).collect();
    ground.resources = index.into_iter().map(|(name, places)| (name, ids(places))).collect();
    Ok((declared, effort))
}

impl Expanded {
    /// What a PUT of a resource would send, now that those before it are there. `look` shows a resource as a whole.
    ///
    /// # Errors
    /// When it needs a resource that is not there, or what that one does not have.
    pub fn body(
        &mut self,
        place: usize,
        look: &dyn Fn(&ResourceId) -> Option<Value>,
    ) -> Result<Value, ArmError> {
        let Some(declared) = self.resources.get(place) else {
            return Err(refusal(format!("there is no resource {place} in the template")));
        };
        let (written, turn) = match &declared.body {
            Body::Known(value) => return Ok(value.clone()),
            Body::Later(written, turn) => (written, turn),
        };
        let turn = turn.as_ref().map(|(name, index)| Turn { name, index: *index, outer: None });
        let look: Look<'_> = look;
        let scope = Scope::new(&self.ground, Some(look)).with_effort(self.effort);
        let id = declared.id.to_string();
        let value = scope.value(&Value::Object(written.clone()), turn.as_ref());
        let value = value.and_then(|value| scope.made(value));
        let value = value.map_err(|trouble| trouble.at(&id).here(&id));
        let effort = scope.effort();
        self.effort = effort;
        value
    }

    /// The outputs, once all resources are there. `look` shows a resource as a whole. Who asks again goes on with what is left of
    /// the effort.
    ///
    /// # Errors
    /// When one needs a resource that is not there, or what that one does not have.
    pub fn outputs(&mut self, look: &dyn Fn(&ResourceId) -> Option<Value>) -> Result<Value, ArmError> {
        let look: Look<'_> = look;
        let scope = Scope::new(&self.ground, Some(look)).with_effort(self.effort_of_outputs);
        let outputs = self.outputs_in(&scope);
        let effort = scope.effort();
        self.effort_of_outputs = effort;
        outputs
    }

    fn outputs_in(&self, scope: &Scope<'_>) -> Result<Value, ArmError> {
        let outputs = members(&self.outputs, "outputs")?;
        if outputs.len() > OUTPUTS_MAX {
            return Err(refusal(format!("a template has at most {OUTPUTS_MAX} outputs")));
        }
        let mut all = Map::new();
        for (name, declared) in outputs {
            let trouble = |trouble: Trouble| failed_output(name, trouble.here(name));
            let condition = declared.get("condition").unwrap_or(&Value::Bool(true));
            if scope.value(condition, None).map_err(trouble)? == Value::Bool(false) {
                continue;
            }
            let kind = Kind::of(declared, name)?;
            let value = if declared["copy"].is_object() {
                let (mut entry, named) = (declared["copy"].clone(), Value::from(name.as_str()));
                entry["name"] = named;
                scope.repeated(&entry, None).map(|(_, list)| Value::Array(list))
            } else {
                scope.value(&declared["value"], None)
            };
            let value = value.and_then(|value| scope.made(value)).map_err(trouble)?;
            if !kind.fits(&value) {
                let kind = kind.word();
                return Err(failed_output(name, refusal(format!("the output is not of type {kind}"))));
            }
            all.insert(shown_name(name), shown(kind, &value));
        }
        Ok(all.into())
    }

    /// The parameters as a deployment shows them: secrets without their values.
    #[must_use]
    pub fn parameters(&self) -> Value {
        let value = |parameter: &Parameter| match self
            .ground
            .names
            .get(&(Space::Parameter, parameter.name.to_lowercase()))
        {
            Some(Source::Given(value)) => value.clone(),
            Some(Source::Written(_) | Source::Loop(_)) | None => Value::Null,
        };
        let shown = |parameter: &Parameter| (parameter.name.clone(), parameter.shown(&value(parameter)));
        Value::Object(self.parameters.iter().map(shown).collect())
    }
}

/// The name of an output as clients are shown it: `VMSS` is `vmss`, and `PublicIP` is `publicIP`. Those of `az` rely on it.
fn shown_name(name: &str) -> String {
    let all: Vec<_> = name.chars().collect();
    let is_capital = |place: usize| all.get(place).is_some_and(char::is_ascii_uppercase);
    // A capital before a small letter begins a word; the first of all does not count.
    let begins_word = |place: usize| place > 0 && place + 1 < all.len() && !is_capital(place + 1);
    let end = (0..all.len()).find(|place| !is_capital(*place) || begins_word(*place)).unwrap_or(all.len());
    let small =
        |(place, letter): (usize, &char)| if place < end { letter.to_ascii_lowercase() } else { *letter };
    all.iter().enumerate().map(small).collect()
}

fn failed_output(name: &str, why: ArmError) -> ArmError {
    let message = format!("Unable to evaluate template outputs: '{name}'. Please see error details.");
    ArmError::new(why.status, "DeploymentOutputEvaluationFailed", message).because(vec![why])
}
