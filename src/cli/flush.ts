import type { Command } from 'commander';
import { EXIT } from '../core/errors.ts';
import type { FlushedSink } from '../core/operations.ts';
import { AdminClient } from './admin-client.ts';
import { CONFIG, receiverConfigOf } from './config-options.ts';
import { note, plural, print, type Io } from './io.ts';
import { commandOf, type OptionsOf } from './options.ts';

const HELP = `
Examples:
  millrace flush                         every file that a sink of the running receiver holds open
  millrace flush | xargs -r gunzip -c    reads what was closed, if anything was open
  millrace flush archive --json | jq '.files[].records'

Waits at most 5 seconds until each sink has confirmed the events accepted before, closes its open files, and prints their names.
Files close by themselves when rotate.bytes or rotate.every is reached, and when the receiver stops.

Exit codes: 0 done, 1 failed, 2 usage or config, 3 a file could not be closed, or events still wait for a sink.`;

const OPTIONS = {
  ...CONFIG,
  '--json': 'print one line of JSON per sink',
};
type Options = OptionsOf<typeof OPTIONS>;

export function flushCommand(io: Io): Command {
  return commandOf('flush', OPTIONS, HELP)
    .description('close the files that sinks hold open now, so that they can be read')
    .argument('[sinks...]', 'only these sinks')
    .action(async (sinks: readonly string[], options: Options) => {
      const client = AdminClient.running(receiverConfigOf(options, io).config);
      const body = sinks.length === 0 ? {} : { sinks };
      // Answers when the files are compressed.
      const { flushed } = await client.ask<{ flushed: FlushedSink[] }>('POST', '/flush', body, 0);
      for (const each of flushed) {
        if (options.json === true) print(io, JSON.stringify(each));
        else report(io, each);
      }
      if (flushed.every(({ files }) => files.length === 0)) note(io, 'no file was open');
      const isDone = flushed.every(({ waiting, failed }) => !waiting && failed.length === 0);
      io.setExit(isDone ? EXIT.done : EXIT.partial);
    });
}

function report(io: Io, { sink, files, failed, waiting }: FlushedSink): void {
  for (const { file } of files) print(io, file);
  const records = files.reduce((sum, each) => sum + each.records, 0);
  if (files.length > 0)
    note(io, `${sink}: closed ${plural(files.length, 'file')} with ${plural(records, 'event')}`);
  for (const line of failed) note(io, `${sink}: not closed: ${line}`);
  if (waiting) note(io, `${sink}: earlier events still wait for it; millrace status says why`);
}
