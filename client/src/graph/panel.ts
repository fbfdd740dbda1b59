// The panel beside the editor that shows a graph; a click in it opens the line.

import { type Disposable, Range, Uri, ViewColumn, type WebviewPanel, window } from "vscode";
import type { Graph, Message } from "./model";

export type { Graph } from "./model";

export class GraphPanel implements Disposable {
  private panel: WebviewPanel | undefined;
  private graph: Graph | undefined;

  constructor(private readonly extension: Uri) {}

  /** Show a graph, in the panel that is open already if there is one. */
  show(graph: Graph): void {
    this.graph = graph;
    if (this.panel === undefined) this.panel = this.open();
    else this.panel.reveal(undefined, true);
    this.send();
  }

  dispose(): void {
    this.panel?.dispose();
  }

  private open(): WebviewPanel {
    const files = Uri.joinPath(this.extension, "dist");
    const place = { viewColumn: ViewColumn.Beside, preserveFocus: true };
    const panel = window.createWebviewPanel("gradsight.graph", "Autograd Graph", place, {
      enableScripts: true,
      localResourceRoots: [files],
    });
    panel.webview.onDidReceiveMessage((message: Message) => {
      if (message.kind === "ready") this.send();
      else void this.jump(message.id);
    });
    panel.onDidDispose(() => {
      this.panel = undefined;
    });
    const script = panel.webview.asWebviewUri(Uri.joinPath(files, "graph.js")).toString();
    const style = panel.webview.asWebviewUri(Uri.joinPath(files, "graph.css")).toString();
    panel.webview.html = page(script, style, panel.webview.cspSource, nonce());
    return panel;
  }

  private send(): void {
    if (this.graph !== undefined) void this.panel?.webview.postMessage(this.graph);
  }

  /** Only places that the server named can be opened, whatever the view sends. */
  private async jump(id: string): Promise<void> {
    const node = this.graph?.nodes.find((each) => each.id === id);
    if (node === undefined || node.line === 0 || node.uri === "") return;
    const line = node.line - 1;
    const selection = new Range(line, 0, line, Number.MAX_SAFE_INTEGER);
    await window.showTextDocument(Uri.parse(node.uri), { viewColumn: ViewColumn.One, selection });
  }
}

/** Nothing is loaded but the view's own script and style. */
export function page(script: string, style: string, source: string, once: string): string {
  const policy = `default-src 'none'; style-src ${source}; script-src 'nonce-${once}'`;
  return `<!DOCTYPE html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta http-equiv="Content-Security-Policy" content="${policy}">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <link rel="stylesheet" href="${style}">
  <title>Autograd Graph</title>
</head>
<body>
  <header>
    <h1 id="title"></h1>
    <p id="size"></p>
    <div id="tools" role="toolbar" aria-label="Zoom">
      <button type="button" id="smaller" aria-label="Zoom out">−</button>
      <button type="button" id="fit" aria-label="Fit to the panel">Fit</button>
      <button type="button" id="larger" aria-label="Zoom in">+</button>
    </div>
  </header>
  <main id="graph" aria-label="Autograd graph. Arrow keys move between operators, Enter opens the line."></main>
  <script nonce="${once}" src="${script}"></script>
</body>
</html>`;
}

function nonce(): string {
  return [...crypto.getRandomValues(new Uint8Array(16))]
    .map((byte) => byte.toString(16).padStart(2, "0"))
    .join("");
}
