//! The controller over a real connection.

use baton_controllers::{Controller, Settings, client};
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::scene::{NAMESPACE, definitions, generators, list, prepared, project, set};

#[test]
fn the_controller_works_over_tls() {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let cluster = prepared(definitions()).await;
        cluster.apply("test", &project("default")).await.expect("a project");
        let address = "127.0.0.1:0".parse().expect("a literal address");
        let server = baton_apiserver::serve(cluster.clone(), address).await.expect("a port");
        let kubeconfig = Kubeconfig::from_yaml(&server.kubeconfig()).expect("a kubeconfig");
        let options = KubeConfigOptions::default();
        let config =
            kube::Config::from_custom_kubeconfig(kubeconfig, &options).await.expect("a configuration");
        let client = client::connect(config).expect("a client");
        let controller = Controller::new(client, Settings::new(NAMESPACE), generators()).expect("settings");
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let running = tokio::spawn(async move { controller.run(async { drop(stopped.await) }).await });
        let store = cluster.store();
        let mut watch = store.watch("applications.argoproj.io", None, store.revision()).expect("a watch");
        cluster.apply("test", &set("set", list(&["a", "b"]))).await.expect("a set");
        for _ in 0..2 {
            let event = std::future::poll_fn(|context| watch.poll_next(context)).await.expect("an event");
            assert_eq!(event.change, baton_apiserver::store::Change::Added);
        }
        let _ = stop.send(());
        running.await.expect("ends").expect("ends well");
    });
}
