import { describe, expect, it } from "vitest";
import { FrameReader, resultOf } from "../src/live/frames";
import { pauseAfter } from "../src/live/stream";

describe("the text of a stream", () => {
  it("is read across pieces that are cut anywhere", () => {
    const text = ': hello\r\n\ndata: {"result":1}\n\ndata: {"a":\ndata: 2}\n\n';
    for (let cut = 0; cut <= text.length; cut += 1) {
      const reader = new FrameReader();
      const frames = [...reader.push(text.slice(0, cut)), ...reader.push(text.slice(cut))];
      expect(frames).toEqual([{ kind: "alive" }, { kind: "data", text: '{"result":1}' }, { kind: "data", text: '{"a":\n2}' }]);
    }
  });

  it("says nothing where nothing is complete", () => {
    expect(new FrameReader().push("data: {")).toEqual([]);
  });

  it("gives the result, passes over what is none, and throws what the server calls an error", () => {
    expect(resultOf('{"result":{"type":"ADDED"}}')).toEqual({ type: "ADDED" });
    expect(resultOf("nonsense")).toBeUndefined();
    expect(resultOf("7")).toBeUndefined();
    expect(() => resultOf('{"error":{"message":"token expired"}}')).toThrow("token expired");
  });
});

describe("a line that breaks", () => {
  it("is tried again after pauses that grow, are spread, and end", () => {
    expect(pauseAfter(1, 0)).toBe(250);
    expect(pauseAfter(1, 1)).toBe(500);
    expect(pauseAfter(4, 1)).toBe(4000);
    expect(pauseAfter(50, 1)).toBe(15_000);
  });
});
