// Where the editor enters: puts the parts together when the first Python file is opened.

import { type ExtensionContext, window } from "vscode";
import { Commands } from "./commands";
import { Environments } from "./environments";
import { Notices } from "./notices";
import { SELECTOR, Server } from "./server";
import { Status } from "./status";
import { Trail } from "./trail";

let server: Server | undefined;

/** Called by the editor when a Python file or one of the commands is opened for the first time. */
export async function activate(context: ExtensionContext): Promise<void> {
  const log = window.createOutputChannel("GradSight", { log: true });
  const status = new Status(SELECTOR);
  const environments = new Environments(log);
  server = new Server(context, log, new Notices(log), status, environments);
  const commands = new Commands(context, log, server, status, environments);
  const following = window.onDidChangeActiveTextEditor((editor) => {
    if (editor?.document.languageId === "python") void server?.tellEnvironment(editor.document.uri);
  });
  context.subscriptions.push(log, status, environments, server, commands, following, new Trail());
  await server.restart();
}

/** Called by the editor when it closes. */
export async function deactivate(): Promise<void> {
  await server?.stop();
}
