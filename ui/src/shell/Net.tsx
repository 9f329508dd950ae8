import { Component, type ReactNode } from "react";
import { Glyph } from "../parts/Glyph";

/** Catches what goes wrong while a page is drawn, so that the way to the others stays open. */
export class Net extends Component<{ children: ReactNode }, { caught: boolean }> {
  override state = { caught: false };

  static getDerivedStateFromError(): { caught: boolean } {
    return { caught: true };
  }

  override render(): ReactNode {
    if (!this.state.caught) return this.props.children;
    return (
      <div className="standing" role="alert">
        <Glyph name="failed" className="standing-glyph" />
        <h2>This page could not be drawn</h2>
        <p>The server has sent something these pages do not understand. The command line shows the same.</p>
        <button type="button" className="button" onClick={() => this.setState({ caught: false })}>
          <Glyph name="retry" /> Try again
        </button>
      </div>
    );
  }
}
