// Pages that the server writes, shown as a preview beside the code: a rule, an explained error, the details of a run.

import { isAbsolute, relative } from "node:path";
import { commands, type Disposable, EventEmitter, Uri, workspace } from "vscode";

const SCHEME = "gradsight";

export class Pages implements Disposable {
  private readonly changed = new EventEmitter<Uri>();
  private readonly texts = new Map<string, string>();
  private readonly registered = workspace.registerTextDocumentContentProvider(SCHEME, {
    onDidChange: this.changed.event,
    provideTextDocumentContent: (uri?: Uri) => this.texts.get(uri?.toString() ?? "") ?? this.last,
  });
  private last = "";

  /** Show a page under a name; a second page of that name takes its place. */
  async show(name: string, markdown: string): Promise<void> {
    const uri = Uri.parse(`${SCHEME}:${name}.md`);
    this.last = followable(markdown, workspace.workspaceFolders?.[0]?.uri.fsPath);
    this.texts.set(uri.toString(), this.last);
    this.changed.fire(uri);
    await commands.executeCommand("markdown.showPreviewToSide", uri);
  }

  dispose(): void {
    this.registered.dispose();
    this.changed.dispose();
  }
}

/** A preview follows no `file:` links, but paths that begin at the first folder of the workspace. */
export function followable(markdown: string, root: string | undefined): string {
  return markdown.replace(/\[([^\]]*)\]\((file:[^)\s#]+)([^)\s]*)\)/g, (_whole, label, uri, line) => {
    const path = root === undefined ? "" : relative(root, Uri.parse(uri).fsPath).replace(/\\/g, "/");
    return path === "" || isAbsolute(path) ? label : `[${label}](</${path}${line}>)`;
  });
}
