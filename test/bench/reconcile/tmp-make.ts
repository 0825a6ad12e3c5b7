import { makeBoth } from './make-both.ts';
import { writeConfig } from '../../support/millrace.ts';
const [, , folder = '', events = ''] = process.argv;
await makeBoth(folder, { events: Number(events), files: 20 }, new AbortController().signal);
writeConfig(folder);
