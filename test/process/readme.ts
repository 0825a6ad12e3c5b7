import { blocksOf } from '../support/markdown.ts';

export const README = blocksOf('README.md');
const READY =
  'until curl --silent --fail --output /dev/null http://127.0.0.1:9090/readyz; do sleep 0.2; done';
/** Ends the receiver that runs in the background. */
export const STOP = 'kill -TERM $! && wait $!';

/** The README's commands as somebody at a terminal would give them: a secret instead of `…`, `serve` in its own shell. */
export function typed(block: string): string {
  return block
    .replaceAll('whsec_…', '"whsec_$(openssl rand -base64 32)"')
    .replaceAll(/^millrace serve.*$/gm, (line) => `${line.replace(/ *#.*/, '')} 2> millrace.log &\n${READY}`);
}
