import { useState, type FormEvent } from "react";
import * as calls from "../api/calls";
import { asApiError, useLoaded } from "../live/source";
import { Glyph, Mark } from "../parts/Glyph";
import { askWho } from "./session";
import "./login.css";

/** Signing in, by a local account or by the operator's own sign-on. */
export function LoginPage() {
  const settings = useLoaded("settings", calls.serverSettings);
  const [username, setUsername] = useState("");
  const [password, setPassword] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<string | undefined>(undefined);
  const signOn = settings.value?.oidcConfig?.name ?? (settings.value?.dexConfig === undefined ? undefined : "single sign-on");
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    calls.signIn(username, password).then(askWho, (cause: unknown) => {
      const { status } = asApiError(cause);
      // What the server says is not repeated here: it could tell a stranger whether an account exists.
      setError(status === 401 || status === 403 ? "Name or password is wrong." : status === 429 ? "Too many attempts. Wait a few minutes." : "The server does not answer. Try again.");
      setPassword("");
      setBusy(false);
    });
  };
  return (
    <main className="login">
      <div className="login-track" aria-hidden>
        <span />
        <span />
        <span />
        <span />
      </div>
      <form className="login-box" onSubmit={submit} aria-labelledby="login-title">
        <Mark />
        <h1 id="login-title">Baton</h1>
        <p className="quiet">The next runner starts when the one before has arrived.</p>
        {signOn !== undefined && (
          <a className="button button-main" href={`/auth/login?return_url=${encodeURIComponent(location.origin + location.pathname)}`}>
            <Glyph name="door" /> Sign in with {signOn}
          </a>
        )}
        {settings.value?.userLoginsDisabled !== true && (
          <>
            <label className="field">
              <span>Name</span>
              <input name="username" autoComplete="username" autoCapitalize="none" spellCheck={false} required autoFocus maxLength={64} value={username} onChange={(event) => setUsername(event.target.value)} />
            </label>
            <label className="field">
              <span>Password</span>
              <input name="password" type="password" autoComplete="current-password" required maxLength={256} value={password} onChange={(event) => setPassword(event.target.value)} />
            </label>
            {error !== undefined && (
              <p className="notice tone-bad" role="alert">
                <Glyph name="failed" />
                {error}
              </p>
            )}
            <button type="submit" className={signOn === undefined ? "button button-main" : "button"} disabled={busy}>
              {busy ? "Signing in …" : "Sign in"}
            </button>
          </>
        )}
      </form>
    </main>
  );
}
