import { readFileSync } from 'node:fs';
import { Command } from 'commander';
import { archiveCommand } from './archive.ts';
import { backfillCommand } from './backfill.ts';
import { checkCommand } from './check.ts';
import { completionCommand } from './completion.ts';
import { deadLettersCommand } from './dead-letters.ts';
import { eraseCommand } from './erase.ts';
import { demoCommand } from './demo.ts';
import { devCommand } from './dev.ts';
import { exportCommand } from './export.ts';
import type { Io } from './io.ts';
import { keysCommand } from './keys.ts';
import { ndjsonCommand } from './ndjson.ts';
import { pullCommand } from './pull.ts';
import { quarantineCommand } from './quarantine.ts';
import { reconcileCommand } from './reconcile.ts';
import { replayCommand } from './replay.ts';
import { routeCommand } from './route.ts';
import { schemaCommand } from './schema.ts';
import { sandboxCommand } from './sandbox.ts';
import { sendCommand } from './send.ts';
import { serveCommand } from './serve.ts';
import { statusCommand } from './status.ts';

const HELP = `
Start here:
  millrace demo                 see it work, in a temporary folder
  millrace dev                  all of it on this machine, to develop against
  millrace check                is my config right, and what does it do?
  MILLRACE_SECRET=… millrace serve

Exit codes: 0 done, 1 failed, 2 usage or config, 3 partly done and resumable, 4 a verification found a difference.
Results go to stdout, progress and logs to stderr.`;

/** The whole command line; every command is a file beside this one. */
export function createProgram(io: Io): Command {
  const { version } = JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as {
    version: string;
  };
  const program = new Command('millrace')
    .description('Receive signed health-data webhooks, keep them durably, forward them to your sinks.')
    .version(version)
    .addHelpText('after', HELP);
  const commands = [
    serveCommand(io),
    devCommand(io),
    demoCommand(io),
    checkCommand(io),
    routeCommand(io),
    sendCommand(io),
    statusCommand(io),
    quarantineCommand(io),
    deadLettersCommand(io),
    archiveCommand(io),
    reconcileCommand(io),
    eraseCommand(io),
    backfillCommand(io),
    pullCommand(io),
    replayCommand(io),
    exportCommand(io),
    keysCommand(io),
    sandboxCommand(io),
    ndjsonCommand(io),
    schemaCommand(io),
    completionCommand(io),
  ];
  for (const command of commands) program.addCommand(command);
  return configure(program, io);
}

/** Usage errors become exit code 2 in main.ts; nothing below it may end the process. */
function configure(command: Command, io: Io): Command {
  command.exitOverride();
  command.configureOutput({
    writeOut: (text) => void io.stdout.write(text),
    writeErr: (text) => void io.stderr.write(text),
  });
  command.showHelpAfterError('(run it with --help for the options and examples)');
  for (const child of command.commands) configure(child, io);
  return command;
}
