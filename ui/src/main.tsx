import { lazy, StrictMode, Suspense, useEffect } from "react";
import { createRoot } from "react-dom/client";
import { ApprovalsPage } from "./approvals/ApprovalsPage";
import { FleetPage } from "./fleet/FleetPage";
import { useSource } from "./live/source";
import { Anchor } from "./parts/Anchor";
import { routeOf, usePath, type Route } from "./parts/route";
import { Loading, Nothing, Refused } from "./parts/Standing";
import { ApiError } from "./api/request";
import { RolloutPage } from "./rollout/RolloutPage";
import { Net } from "./shell/Net";
import { LoginPage } from "./shell/LoginPage";
import { askWho, session } from "./shell/session";
import { Shell } from "./shell/Shell";
import { beginTheme } from "./shell/theme";
import "./look/tokens.css";
import "./look/base.css";
import "./look/parts.css";

// What is watched comes with the first load; what is looked up comes when it is asked for.
const ApplicationsPage = lazy(() => import("./applications/ApplicationsPage"));
const ApplicationPage = lazy(() => import("./applications/ApplicationPage"));
const SettingsPage = lazy(() => import("./settings/SettingsPage"));
const AuditPage = lazy(() => import("./settings/AuditPage"));

function Page({ route }: { route: Route }) {
  switch (route.page) {
    case "login":
    case "fleet":
      return <FleetPage />;
    case "rollout":
      return <RolloutPage namespace={route.namespace} name={route.name} />;
    case "approvals":
      return <ApprovalsPage />;
    case "applications":
      return <ApplicationsPage />;
    case "application":
      return <ApplicationPage namespace={route.namespace} name={route.name} />;
    case "settings":
      return <SettingsPage />;
    case "audit":
      return <AuditPage />;
    case "unknown":
      return (
        <Nothing title="There is no such page">
          <p>
            <Anchor href="/">To the fleet</Anchor>
          </p>
        </Nothing>
      );
  }
}

const titles: Record<Route["page"], string> = {
  login: "Sign in", fleet: "Fleet", rollout: "Rollout", approvals: "Approvals", applications: "Applications", application: "Application", settings: "Settings", audit: "Audit", unknown: "Not found",
};

function Root() {
  const path = usePath();
  const who = useSource(session);
  const route = routeOf(path);
  useEffect(() => void askWho(), []);
  useEffect(() => {
    if (who.state !== "unreachable") return undefined;
    const timer = setTimeout(() => void askWho(), 5000);
    return () => clearTimeout(timer);
  }, [who]);
  useEffect(() => {
    document.title = `${"name" in route ? route.name : titles[route.page]} · Baton`;
  }, [path]);
  if (who.state === "asking") return <Loading what="who you are" />;
  if (who.state === "unreachable") return <Refused error={new ApiError(0, who.message)} what="the server" again={() => void askWho()} />;
  if (who.state === "out") return <LoginPage />;
  return (
    <Shell user={who.user}>
      <Suspense fallback={<Loading what="the page" />}>
        <Net key={path}>
          <Page route={route} />
        </Net>
      </Suspense>
    </Shell>
  );
}

beginTheme();
const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <Root />
    </StrictMode>,
  );
}
