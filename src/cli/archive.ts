import { Command } from 'commander';
import { verifyArchive, type VerifyReport } from '../archive/verify.ts';
import { loadConfig } from '../config/load.ts';
import { EXIT, MillraceError } from '../core/errors.ts';
import type { Verifier } from '../core/verifier.ts';
import { createVerifier } from '../verify/registry.ts';
import { note, print, type Io } from './io.ts';

const HELP = `
Examples:
  millrace archive verify ./data/archive
  millrace archive verify ./data/archive --config config/millrace.yaml
  millrace archive verify ./data/archive --secret-env MILLRACE_SECRET --secret-env OLD_SECRET --json

Signatures are checked when --config or --secret-env says how; --secret-env names variables with Standard Webhooks secrets.
Nothing is changed. Exit codes: 0 all as it should be, 1 not readable, 2 usage or config, 4 a difference, named by file.`;

interface Options {
  readonly json?: boolean;
  readonly config?: string;
  readonly secretEnv: readonly string[];
}

/** `millrace archive …`: looks at what the files sink wrote. */
export function archiveCommand(io: Io): Command {
  const archive = new Command('archive')
    .description('look at what the files sink wrote')
    .addHelpText('after', HELP);
  archive
    .command('verify')
    .description('hold every file against the manifest: counts, sizes, hashes, chain and signatures')
    .argument('<path>', 'the folder of the archive')
    .option('--config <file>', 'check signatures as the signing section of this config says')
    .option(
      '--secret-env <name>',
      'check signatures with the secret in this environment variable; may be repeated',
      (name: string, names: readonly string[]) => [...names, name],
      [],
    )
    .option(
      '--json',
      'print one JSON document: {path, files, records, bytes, signatures, differences, notes}',
    )
    .addHelpText('after', HELP)
    .action(async (path: string, options: Options) => {
      const verifier = verifierOf(options, io);
      const report = await verifyArchive(path, {
        ...(verifier === null ? {} : { verifier }),
        signal: io.signal,
        onProgress: progressTo(io),
      });
      if (options.json === true) print(io, JSON.stringify(report, null, 2));
      else render(report, verifier !== null, io);
      if (report.differences.length > 0) io.setExit(EXIT.difference);
    });
  return archive;
}

/** Null when nothing says how to check. Age is no fault in an archive, so the tolerance has no bounds. */
function verifierOf({ config, secretEnv }: Options, io: Io): Verifier | null {
  const tolerance = Number.POSITIVE_INFINITY;
  if (config !== undefined && secretEnv.length > 0) {
    throw new MillraceError('usage', 'give --config or --secret-env, not both');
  }
  if (config !== undefined) {
    const { signing } = loadConfig({ file: config, env: io.env, lenient: true }).config;
    return createVerifier({ ...signing, tolerance });
  }
  if (secretEnv.length === 0) return null;
  const secrets = secretEnv.map((name) => {
    const secret = io.env[name];
    if (secret === undefined || secret === '')
      throw new MillraceError('usage', `--secret-env ${name}: not set`);
    return secret;
  });
  return createVerifier({ scheme: 'standard-webhooks', secrets, tolerance });
}

/** One line that is written over on a terminal; elsewhere a line for every hundredth file. */
function progressTo(io: Io): (done: number, total: number, file: string) => void {
  return (done, total, file) => {
    if (io.stderr.isTTY === true) {
      io.stderr.write(`\r\u001b[K${done + 1}/${total} ${file}${done + 1 === total ? '\n' : ''}`);
    } else if (done % 100 === 0) {
      note(io, `reading file ${done + 1} of ${total}: ${file}`);
    }
  };
}

function render(report: VerifyReport, checked: boolean, io: Io): void {
  const { files, records, bytes, signatures, differences, notes } = report;
  for (const { file, detail } of notes) print(io, `note       ${file}: ${detail}`);
  for (const { code, file, line, detail } of differences) {
    print(io, `difference ${file}${line === null ? '' : `:${line}`}: ${code}: ${detail}`);
  }
  print(io, `${files} files, ${records} records, ${bytes} bytes`);
  if (checked) {
    const { valid, invalid, unsigned } = signatures;
    print(io, `signatures: ${valid} valid, ${invalid} invalid, ${unsigned} without`);
  } else {
    print(io, 'signatures: not checked; --config or --secret-env says how');
  }
  print(io, differences.length === 0 ? 'all as the manifest says' : `${differences.length} differences`);
}
