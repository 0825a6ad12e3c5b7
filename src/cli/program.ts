import { Command, CommanderError } from 'commander';
import { EXIT, MillraceError } from '../core/errors.ts';
import { ownPackage } from '../lib/installed.ts';
import { nameThisProcess } from '../lib/lock-owner.ts';
import { visibleLines } from '../lib/visible.ts';
import { wantsJson, writeFailure, writeUsageFailure } from './failure.ts';
import { wrapHelp } from './wrap-help.ts';
import type { Io } from './io.ts';

type Load = () => Promise<(io: Io) => Command>;

/** Every command. Each is loaded by itself, so that it starts fast. */
const COMMANDS: Readonly<Record<string, Load>> = {
  init: async () => (await import('./init/command.ts')).initCommand,
  serve: async () => (await import('./serve.ts')).serveCommand,
  check: async () => (await import('./check/command.ts')).checkCommand,
  status: async () => (await import('./status.ts')).statusCommand,
  tail: async () => (await import('./tail.ts')).tailCommand,
  console: async () => (await import('./console.ts')).consoleCommand,
  route: async () => (await import('./route.ts')).routeCommand,
  quarantine: async () => (await import('./set-aside.ts')).quarantineCommand,
  'dead-letters': async () => (await import('./set-aside.ts')).deadLettersCommand,
  backfill: async () => (await import('./backfill/command.ts')).backfillCommand,
  replay: async () => (await import('./replay/command.ts')).replayCommand,
  export: async () => (await import('./export.ts')).exportCommand,
  erase: async () => (await import('./erase/command.ts')).eraseCommand,
  dev: async () => (await import('./dev/command.ts')).devCommand,
  send: async () => (await import('./send.ts')).sendCommand,
  archive: async () => (await import('./archive.ts')).archiveCommand,
  audit: async () => (await import('./audit.ts')).auditCommand,
  demo: async () => (await import('./demo/command.ts')).demoCommand,
  drain: async () => (await import('./drain.ts')).drainCommand,
  fixture: async () => (await import('./fixture/command.ts')).fixtureCommand,
  flush: async () => (await import('./flush.ts')).flushCommand,
  journal: async () => (await import('./journal.ts')).journalCommand,
  keys: async () => (await import('./keys.ts')).keysCommand,
  listen: async () => (await import('./listen.ts')).listenCommand,
  load: async () => (await import('./load/command.ts')).loadCommand,
  ndjson: async () => (await import('./ndjson.ts')).ndjsonCommand,
  pull: async () => (await import('./pull.ts')).pullCommand,
  receipt: async () => (await import('./receipt.ts')).receiptCommand,
  reconcile: async () => (await import('./reconcile/command.ts')).reconcileCommand,
  sandbox: async () => (await import('./sandbox/command.ts')).sandboxCommand,
  schema: async () => (await import('./schema.ts')).schemaCommand,
  sink: async () => (await import('./sink.ts')).sinkCommand,
  types: async () => (await import('./types.ts')).typesCommand,
  webhooks: async () => (await import('./webhooks/command.ts')).webhooksCommand,
};

/** The commands that people use most, in the groups of the help, each with its line there; the help only names the others. */
const GROUPS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  'Run:': {
    init: 'write a config, .env and what runs it',
    serve: 'receive, keep and deliver events',
    check: 'is the config valid, and what does it do',
  },
  'Inspect:': {
    status: 'journal, backlog of each sink, what is wrong',
    tail: 'show events as they come in',
    console: 'open the console in a browser',
    route: 'explain where an event type goes',
    quarantine: 'events that are not valid: list, retry, drop',
    'dead-letters': 'events that a sink refused: list, retry, drop',
  },
  'Data:': {
    backfill: 'fetch history from the service',
    replay: 'send an archive or the journal to sinks again',
    export: 'make tables of an archive',
    erase: 'remove all data of a user',
  },
  'Develop:': {
    dev: 'run everything on this machine',
    send: 'send made-up signed events',
  },
};
const IN_HELP = new Set(Object.values(GROUPS).flatMap((group) => Object.keys(group)));
const MORE = Object.keys(COMMANDS).filter((name) => !IN_HELP.has(name));

const HELP = `
More commands: ${MORE.join(', ')}

Start here:
  millrace demo   see it work, in a temporary folder
  millrace dev    run everything on this machine, for development
  millrace init   write a config and .env, and print the next commands

Exit codes: 0 done, 1 failed, 2 usage or config, 3 partly done and resumable, 4 a verification found a difference.
Results go to stdout, progress and logs to stderr.`;

/** Runs a command line and sets the exit code. Never rejects. */
export async function runProgram(io: Io, args: readonly string[]): Promise<void> {
  const isJson = wantsJson(args);
  try {
    await (await createProgram(io, wordOf(args), isJson)).parseAsync(args, { from: 'user' });
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

/** The command that a command line names, also after `help`; empty without one, or when it asks for help about no command. */
function wordOf(args: readonly string[]): string {
  const [first = '', second = ''] = args.filter((arg) => arg !== '--');
  const word = first === 'help' ? second : first;
  const asksHelp = first === 'help' || args.includes('--help') || args.includes('-h');
  return asksHelp && !Object.hasOwn(COMMANDS, word) ? '' : word;
}

/**
 * The program with its commands.
 * @param only the command to load; with an unknown name the program has only names, for the help, the version and suggestions.
 *   Without it all commands are loaded.
 * @param isJson does not write errors of the command line as text
 */
export async function createProgram(io: Io, only?: string, isJson = false): Promise<Command> {
  const program = new Command('millrace')
    .description('Receive signed health-data webhooks, keep them durably, forward them to your sinks.')
    .version(ownPackage().version)
    .addHelpText('after', HELP)
    .hook('preAction', (_, command) => nameThisProcess(nameOf(command)));
  const isHelp = only === '' || only?.startsWith('-') === true;
  const isKnown = only !== undefined && Object.hasOwn(COMMANDS, only);
  const others = Object.fromEntries(MORE.map((name) => [name, '']));
  for (const [heading, group] of Object.entries({ ...GROUPS, 'Help:': others })) {
    program.commandsGroup(heading);
    for (const [name, summary] of Object.entries(group)) {
      if (isKnown && name !== only) continue;
      const command = only === undefined || isKnown ? await COMMANDS[name]?.() : undefined;
      const hidden = isHelp && summary === '';
      program.addCommand(command?.(io) ?? new Command(name).summary(summary), { hidden });
    }
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
