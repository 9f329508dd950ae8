//! The reader of YAML bodies.

use crate::dice::Dice;
use crate::encoding::{self, YAML};
use crate::templates::OBJECTS;
use crate::values;
use crate::world::{Sent, World, run};

/// Any YAML is an object or a bad request.
pub fn yaml(bytes: &[u8]) {
    let mut dice = Dice::new(bytes);
    let mut object = dice.pick(&OBJECTS).clone();
    values::damage(&mut dice, &mut object);
    let written = encoding::yaml(&mut dice, &object);
    run(async {
        let world = World::new().await;
        for body in [written, bytes.to_vec()] {
            let headers = vec![("content-type", YAML.to_owned())];
            let uri = "/api/v1/namespaces/team/configmaps".to_owned();
            let sent = Sent { method: "POST", uri, headers, body };
            let reply = world.send(&sent).await.expect("the request is well formed");
            assert!(matches!(reply.code, 201 | 400 | 422), "{sent:?}: {} {}", reply.code, reply.text());
        }
        world.check().await;
    });
}
