import type { Command } from 'commander';
import { compactArchive, type CompactReport } from '../archive/compact.ts';
import { MANIFEST } from '../core/archive.ts';
import { EXIT } from '../core/errors.ts';
import { aboutBytes, parseBytes, parseDuration } from '../lib/units.ts';
import { openProof, readProof } from '../privacy/proof/open.ts';
import { actAsOwnerOf } from './as-owner.ts';
import { configOf } from './config-options.ts';
import { note, plural, printLine, printReport, type Io } from './io.ts';
import { commandOf, type OptionsOf, readBy } from './options.ts';
import { withArchives } from './places.ts';
import { StatusLine } from './status-line.ts';

const HELP = `
Examples:
  millrace archive compact ./data/archive --dry-run
  millrace archive compact ./data/archive --config config/millrace.yaml
  millrace archive compact s3://acme/archive --config config/millrace.yaml --min-age 1d
  millrace archive compact gs://acme/archive --target-size 256MiB

Joins the small closed files of each folder into one file of the same kind. Left alone are: files of half the target size or
more, .zst files, files written less than --min-age ago, and files that the manifest does not list. The manifest keeps the
hashes of the old files, so archive verify still checks each of them. A signed manifest needs the key: --config.

The receiver may run at the same time, and all millrace commands read each event once. Programs that do not read the manifest
can see events twice until the old files are removed. Memory: about the target size. After a kill, run the same command again.

Exit codes: 0 done, 1 not readable, 2 usage or config, or another process is compacting, 3 interrupted, or files were left
alone for the reasons that are printed.`;

const OPTIONS = {
  '--target-size <size>': readBy(targetSize, 'no new file becomes larger', '128MiB'),
  '--min-age <time>': readBy(parseDuration, 'leave younger files alone', '1h'),
  '--config <file>': 'the config: its key signs the new line, its storage section reaches stores',
  '--dry-run': 'only print what it would do',
  '--json':
    'print one JSON document: {path, dry_run, made: [{file, files, bytes}], replaced, bytes, cleared, problems: [{file, reason}], unlisted: [file], complete}',
};
type Options = OptionsOf<typeof OPTIONS>;

export function compactCommand(io: Io): Command {
  return commandOf('compact', OPTIONS, HELP)
    .description('join small closed files of each folder into large ones')
    .argument('<path>', 'folder of the archive, or its URL: s3://, azblob:// or gs://')
    .action((path: string, options: Options) => compact(path, options, io));
}

/** The new file is built in one buffer. */
function targetSize(text: string): number {
  const bytes = parseBytes(text);
  if (bytes >= 1024 && bytes <= 1024 ** 3) return bytes;
  throw new RangeError('must be from 1KiB to 1GiB');
}

async function compact(path: string, options: Options, io: Io): Promise<void> {
  const { targetSize: targetBytes, minAge, json = false, dryRun = false } = options;
  const config = options.config === undefined ? null : configOf(options, io).config;
  if (!dryRun) actAsOwnerOf(path, MANIFEST);
  const status = new StatusLine(io);
  const made: { file: string; files: number; bytes: number }[] = [];
  const problems: { file: string; reason: string }[] = [];
  const unlisted: string[] = [];
  const report = await withArchives([path], options, io, (places) =>
    compactArchive(path, {
      places,
      targetBytes,
      minAge,
      dryRun,
      now: Date.now(),
      trust: { keys: new Set(config === null ? [] : readProof(config).trusted), receipts: null },
      proof: config === null ? undefined : openProof(config),
      signal: io.signal,
      onProgress: (done, total, file) =>
        status.show(() => `joining ${total - done} files${status.pace(done, total)}: ${file}`),
      onMade: (one) => {
        made.push(one);
        const verb = dryRun ? 'would join' : 'joined';
        if (!json) printLine(io, `${verb} ${one.files} files into ${one.file}, ${aboutBytes(one.bytes)}`);
      },
      onUnlisted: (file) => {
        unlisted.push(file);
        note(io, `not joined ${file}: the manifest does not list it`);
      },
      onProblem: (file, reason) => {
        problems.push({ file, reason });
        note(io, `left alone ${file}: ${reason}`);
      },
    }),
  );
  const { replaced, bytes, cleared, complete } = report;
  const document = { path, dry_run: dryRun, made, replaced, bytes, cleared, problems, unlisted, complete };
  printReport(io, options, document, () => summary(report, dryRun));
  if (!complete || problems.length > 0) io.setExit(EXIT.partial);
}

function summary({ made, replaced, bytes, cleared, complete }: CompactReport, dryRun: boolean): string {
  const left = cleared === 0 ? '' : `; removed ${plural(cleared, 'file')} that an earlier run had left`;
  const end = complete ? '' : '; interrupted: run the same command again';
  if (made === 0) return `nothing to join${left}${end}`;
  const verb = dryRun ? 'would become' : 'became';
  return `${plural(replaced, 'file')} ${verb} ${made}, ${aboutBytes(bytes)}${left}${end}`;
}
