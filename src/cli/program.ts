import { Command, CommanderError } from 'commander';
import { EXIT, MillraceError } from '../core/errors.ts';
import { ownPackage } from '../lib/installed.ts';
import { nameThisProcess } from '../lib/lock-owner.ts';
import { visibleLines } from '../lib/visible.ts';
import { wantsJson, writeFailure, writeUsageFailure } from './failure.ts';
import { wrapHelp } from './wrap-help.ts';
import type { Io } from './io.ts';

type Load = () => Promise<(io: Io) => Command>;

/** Commands in the groups of the help. Each is loaded by itself, so that it starts fast. */
const GROUPS: Readonly<Record<string, Readonly<Record<string, Load>>>> = {
  'Run:': {
    init: async () => (await import('./init/command.ts')).initCommand,
    serve: async () => (await import('./serve.ts')).serveCommand,
    flush: async () => (await import('./flush.ts')).flushCommand,
    drain: async () => (await import('./drain.ts')).drainCommand,
    check: async () => (await import('./check/command.ts')).checkCommand,
    quarantine: async () => (await import('./set-aside.ts')).quarantineCommand,
    'dead-letters': async () => (await import('./set-aside.ts')).deadLettersCommand,
    sink: async () => (await import('./sink.ts')).sinkCommand,
    journal: async () => (await import('./journal.ts')).journalCommand,
    keys: async () => (await import('./keys.ts')).keysCommand,
    webhooks: async () => (await import('./webhooks/command.ts')).webhooksCommand,
  },
  'Inspect:': {
    status: async () => (await import('./status.ts')).statusCommand,
    tail: async () => (await import('./tail.ts')).tailCommand,
    console: async () => (await import('./console.ts')).consoleCommand,
    route: async () => (await import('./route.ts')).routeCommand,
    archive: async () => (await import('./archive.ts')).archiveCommand,
    receipt: async () => (await import('./receipt.ts')).receiptCommand,
    reconcile: async () => (await import('./reconcile/command.ts')).reconcileCommand,
    audit: async () => (await import('./audit.ts')).auditCommand,
  },
  'History:': {
    backfill: async () => (await import('./backfill/command.ts')).backfillCommand,
    pull: async () => (await import('./pull.ts')).pullCommand,
    replay: async () => (await import('./replay/command.ts')).replayCommand,
  },
  'Data:': {
    load: async () => (await import('./load.ts')).loadCommand,
    export: async () => (await import('./export.ts')).exportCommand,
    ndjson: async () => (await import('./ndjson.ts')).ndjsonCommand,
    schema: async () => (await import('./schema.ts')).schemaCommand,
    erase: async () => (await import('./erase/command.ts')).eraseCommand,
  },
  'Develop:': {
    dev: async () => (await import('./dev/command.ts')).devCommand,
    demo: async () => (await import('./demo/command.ts')).demoCommand,
    types: async () => (await import('./types.ts')).typesCommand,
    listen: async () => (await import('./listen.ts')).listenCommand,
    fixture: async () => (await import('./fixture/command.ts')).fixtureCommand,
    send: async () => (await import('./send.ts')).sendCommand,
    sandbox: async () => (await import('./sandbox/command.ts')).sandboxCommand,
  },
};
const VERSION: ReadonlySet<string | undefined> = new Set(['-V', '--version']);

const HELP = `
Start here:
  millrace demo                 see it work, in a temporary folder
  millrace dev                  run everything on this machine, for development
  millrace init                 write a config and .env, and print the next commands

Exit codes: 0 done, 1 failed, 2 usage or config, 3 partly done and resumable, 4 a verification found a difference.
Results go to stdout, progress and logs to stderr.`;

/** Runs a command line and sets the exit code. Never rejects. */
export async function runProgram(io: Io, args: readonly string[]): Promise<void> {
  const isJson = wantsJson(args);
  try {
    await (await createProgram(io, args[0], isJson)).parseAsync(args, { from: 'user' });
  } catch (thrown) {
    // The error of the command, when closing something failed too.
    const error: unknown = thrown instanceof SuppressedError ? thrown.suppressed : thrown;
    if (error instanceof CommanderError) {
      if (error.exitCode !== 0 && isJson) writeUsageFailure(io, error);
      return io.setExit(error.exitCode === 0 ? EXIT.done : EXIT.usage);
    }
    writeFailure(io, error, isJson);
    io.setExit(error instanceof MillraceError ? error.exit : EXIT.failed);
  }
}

/**
 * The program with its commands.
 * @param only the first word of the command line: only the command of this name is loaded, and no command for the version.
 *   Without it, or with an unknown name, all commands are loaded.
 * @param isJson does not write errors of the command line as text
 */
export async function createProgram(io: Io, only?: string, isJson = false): Promise<Command> {
  const program = new Command('millrace')
    .description('Receive signed health-data webhooks, keep them durably, forward them to your sinks.')
    .version(ownPackage().version)
    .addHelpText('after', HELP)
    .hook('preAction', (_, command) => nameThisProcess(nameOf(command)));
  const known =
    VERSION.has(only) ||
    Object.values(GROUPS).some((group) => only !== undefined && Object.hasOwn(group, only));
  for (const [heading, commands] of Object.entries(GROUPS)) {
    program.commandsGroup(heading);
    for (const [name, load] of Object.entries(commands))
      if (!known || only === name) program.addCommand((await load())(io));
  }
  return configure(program.helpCommand(true), io, isJson);
}

/** `archive verify`: the name of a command with those above it, without the program's. */
function nameOf(command: Command): string {
  const { parent } = command;
  const isTop = parent === null || parent.parent === null;
  return isTop ? command.name() : `${nameOf(parent)} ${command.name()}`;
}

/** Keeps commander from ending the process. */
function configure(command: Command, io: Io, isJson: boolean): Command {
  command.exitOverride();
  command.configureOutput({
    writeOut: (text) => void io.stdout.write(wrapHelp(visibleLines(text), io.stdout.columns ?? 80)),
    writeErr: (text) =>
      void (isJson || io.stderr.write(wrapHelp(visibleLines(text), io.stderr.columns ?? 80))),
  });
  command.showHelpAfterError('(run it with --help for the options and examples)');
  for (const child of command.commands) configure(child, io, isJson);
  return command;
}
