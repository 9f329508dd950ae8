// What the caller may do to an Application: asked once for each action.

import { useEffect, useState } from "react";
import * as calls from "../api/calls";
import type { Application } from "../api/shapes";
import { useLoaded } from "../live/source";

/** What the right is called in a policy. The namespace is named only where it is not the control plane's own. */
export function objectOf(application: Application, controlPlane: string): string {
  const { name, namespace } = application.metadata;
  return namespace === controlPlane ? `${application.spec.project}/${name}` : `${application.spec.project}/${namespace}/${name}`;
}

export const approvalRight = (resource: { group?: string; kind: string }): string => `action/${resource.group ?? ""}/${resource.kind}/approve-deletion`;

/** `true` and `false` as the server says, nothing while it has not said. */
export function useRights(application: Application | undefined, actions: string[]): (action: string) => boolean | undefined {
  const [answers, setAnswers] = useState<ReadonlyMap<string, boolean>>(new Map());
  const settings = useLoaded("settings", calls.serverSettings);
  // Asked for only when it is known what the object is called.
  const known = application !== undefined && !settings.loading;
  const object = known ? objectOf(application, settings.value?.controllerNamespace ?? "argocd") : "";
  const wanted = [...new Set(actions)].sort().join("\n");
  useEffect(() => {
    if (object === "") return undefined;
    let current = true;
    for (const action of wanted === "" ? [] : wanted.split("\n")) {
      calls.mayI("applications", action, object).then(
        (may) => current && setAnswers((before) => new Map(before).set(`${action} ${object}`, may)),
        () => current && setAnswers((before) => new Map(before).set(`${action} ${object}`, false)),
      );
    }
    return () => {
      current = false;
    };
  }, [object, wanted]);
  return (action) => answers.get(`${action} ${object}`);
}
