// What a path in the settings may contain: `~`, `${workspaceFolder}`, `${userHome}`, `${env:NAME}`, and relative parts.

import { join } from "node:path";

/** What the meaning of a path depends on. */
export interface Surroundings {
  /** The folder of the workspace that the setting holds for, if one is open. */
  readonly workspaceFolder: string | undefined;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The path that is meant; a relative one starts at the workspace folder, a bare name is left to the PATH. */
export function expandPath(value: string, surroundings: Surroundings): string {
  const { workspaceFolder } = surroundings;
  const replaced = expandVariables(value.trim(), surroundings);
  const isRelativePath = /[\\/]/.test(replaced) && !/^([\\/]|[A-Za-z]:)/.test(replaced);
  return isRelativePath && workspaceFolder !== undefined ? join(workspaceFolder, replaced) : replaced;
}

/** The text with its variables replaced; what is not set becomes empty. */
export function expandVariables(value: string, { workspaceFolder, home, env }: Surroundings): string {
  return value
    .replace(/^~(?=$|[\\/])/, home)
    .replace(/\$\{(workspaceFolder|userHome|env:([^}]+))\}/g, (_whole, word: string, name?: string) => {
      if (word === "workspaceFolder") return workspaceFolder ?? "";
      return word === "userHome" ? home : (env[name ?? ""] ?? "");
    });
}
