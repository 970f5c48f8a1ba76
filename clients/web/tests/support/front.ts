// A server in front of the pages: it brings everything to the broker, answers some calls itself, and may have another service worker.

import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { connect } from "node:net";

type Answer = (request: IncomingMessage, body: string, response: ServerResponse) => void;

export class Front {
  /** What is appended to the service worker's script: with other words it is another version. */
  version = "";
  /** Calls that are not for the broker, by method and path. */
  readonly answers = new Map<string, Answer>();
  readonly #server: Server;

  private constructor(target: string) {
    const { hostname, port } = new URL(target);
    this.#server = createServer((request, response) => {
      void this.#pass(target, request, response);
    });
    this.#server.on("upgrade", (request, near, head) => {
      const far = connect(Number(port), hostname, () => {
        const headers = Array.from({ length: request.rawHeaders.length / 2 }, (_, i) =>
          request.rawHeaders.slice(2 * i, 2 * i + 2).join(": "),
        );
        far.write(`${request.method} ${request.url} HTTP/1.1\r\n${headers.join("\r\n")}\r\n\r\n`);
        far.write(head);
        far.pipe(near).pipe(far);
      });
      far.on("error", () => near.destroy());
      near.on("error", () => far.destroy());
    });
  }

  static async to(target: string): Promise<Front> {
    const front = new Front(target);
    await new Promise<void>((resolve) => front.#server.listen(0, "127.0.0.1", resolve));
    return front;
  }

  get url(): string {
    const address = this.#server.address();
    if (typeof address !== "object" || address === null) throw new Error("the server is closed");
    return `http://127.0.0.1:${address.port}/`;
  }

  close(): void {
    this.#server.closeAllConnections();
    this.#server.close();
  }

  async #pass(target: string, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const [method, url] = [request.method ?? "GET", request.url ?? "/"];
    let body = "";
    for await (const part of request) body += String(part);
    const answer = this.answers.get(`${method} ${url}`);
    if (answer !== undefined) {
      answer(request, body, response);
      return;
    }
    try {
      const headers = Object.entries(request.headers).filter(([name]) => ["content-type", "authorization", "accept"].includes(name));
      const sent = method === "GET" || method === "HEAD" ? {} : { body };
      const got = await fetch(new URL(url, target), { method, headers: headers as [string, string][], ...sent });
      const bytes = Buffer.from(await got.arrayBuffer());
      const kept = [...got.headers].filter(([name]) => !["content-encoding", "content-length", "transfer-encoding"].includes(name));
      response.writeHead(got.status, Object.fromEntries(kept));
      response.end(url.startsWith("/phone-worker.js") ? `${bytes.toString()}\n// ${this.version}` : bytes);
    } catch {
      response.destroy();
    }
  }
}
