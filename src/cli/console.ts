import type { Command } from 'commander';
import { consoleLink } from '../observe/admin/console.ts';
import { note, printResult, usageError, type Io } from './io.ts';
import { CONFIG, receiverConfigOf } from './config-options.ts';
import { AdminClient } from './admin-client.ts';
import { commandOf, type OptionsOf } from './options.ts';

const HELP = `
Examples:
  millrace console
  xdg-open "$(millrace console)"

The link works once, within five minutes. It signs in one browser tab for twelve hours, or until the tab is closed.`;

const OPTIONS = {
  ...CONFIG,
  '--json': 'print one JSON object: url, valid_seconds',
};
type Options = OptionsOf<typeof OPTIONS>;

export function consoleCommand(io: Io): Command {
  return commandOf('console', OPTIONS, HELP)
    .description('print a one-time link to the console of the running receiver')
    .action(async (options: Options) => {
      const { config } = receiverConfigOf(options, io);
      if (!config.console.enabled) throw usageError('console.enabled is false');
      const client = AdminClient.running(config);
      const answer = await client.ask<{ code: string; valid_seconds: number }>('POST', '/console/links', {});
      const { code, valid_seconds } = answer;
      const url = consoleLink(client.url, code);
      printResult(io, options, { url, valid_seconds }, url);
      if (options.json !== true) note(io, `valid once, for ${valid_seconds / 60} minutes`);
    });
}
