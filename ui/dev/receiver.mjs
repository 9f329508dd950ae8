// Hears the hooks and checks of a fleet, and answers as it was told to.

import { createServer } from "node:http";

export function startReceiver() {
  const answers = new Map();
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (piece) => (text += piece));
    request.on("end", () => {
      if (request.method === "PUT" && request.url === "/answers") {
        const { path, status } = JSON.parse(text);
        answers.set(path, status);
      } else {
        response.statusCode = answers.get(request.url) ?? 200;
      }
      response.end();
    });
  });
  return new Promise((started) => {
    server.listen(0, "127.0.0.1", () => started({ url: `http://127.0.0.1:${server.address().port}`, stop: () => server.close() }));
  });
}
