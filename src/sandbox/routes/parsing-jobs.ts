import { promisify } from 'node:util';
import express, { type Request, type Response as Answer } from 'express';
import { z } from 'zod';
import { check, uuid, Refusal } from '../check.ts';
import { team, type Operation } from '../operation.ts';
import { jobJson } from '../parsing-jobs.ts';
import type { Team } from '../teams.ts';

const LARGEST = 10_000_000;
/** Bytes for the other fields and the boundaries of a form. */
const FORM_ROOM = 64 * 1024;
const MAGIC = [
  Buffer.from('%PDF-'),
  Buffer.from([0xff, 0xd8, 0xff]),
  Buffer.from('\x89PNG\r\n\x1a\n', 'latin1'),
];
const FIELDS = z.object({ user_id: uuid, needs_human_review: z.enum(['true', 'false']).default('false') });

const readForm = promisify(express.raw({ type: 'multipart/form-data', limit: LARGEST + FORM_ROOM }));

export const parsingJobOperations: readonly Operation[] = [
  team(
    'post',
    '/lab_report/v1/parser/job',
    'Upload a lab report (PDF, JPEG, PNG; 10 MB); beta',
    async ({ world, bearer, request, response }) => {
      needBeta(bearer);
      const { file, ...fields } = Object.fromEntries(await formOf(request, response));
      const { user_id, needs_human_review } = check(FIELDS, fields, 'body');
      if (file === undefined || typeof file === 'string') {
        throw new Refusal(422, [{ loc: ['body', 'file'], msg: 'Field required', type: 'missing' }]);
      }
      if (file.size > LARGEST) throw new Refusal(413, 'The file is larger than 10 MB');
      const bytes = Buffer.from(await file.arrayBuffer());
      if (!MAGIC.some((magic) => magic.equals(bytes.subarray(0, magic.length)))) {
        throw new Refusal(415, 'The file is not a PDF, JPEG or PNG');
      }
      const user = world.users.get(bearer.id, user_id);
      return jobJson(world.parsingJobs.create(user, bytes.length, needs_human_review === 'true'));
    },
  ),
  team(
    'get',
    '/lab_report/v1/parser/job/:job_id',
    'Status and results of a parsing job; beta',
    ({ world, bearer, path }) => {
      needBeta(bearer);
      return jobJson(world.parsingJobs.get(bearer.id, path(z.object({ job_id: uuid })).job_id));
    },
  ),
];

function needBeta({ features }: Team): void {
  if (!features.parsing)
    throw new Refusal(403, 'Lab report parsing is in closed beta and not enabled for your team');
}

/** @throws Refusal 422 for a body that is not a form; errors of the body reader, such as 413 */
async function formOf(request: Request, response: Answer): Promise<FormData> {
  await readForm(request, response);
  const type = request.headers['content-type'] ?? '';
  try {
    return await new Response(request.body as Buffer<ArrayBuffer>, {
      headers: { 'content-type': type },
    }).formData();
  } catch {
    throw new Refusal(422, [{ loc: ['body'], msg: 'Expected multipart/form-data', type: 'value_error' }]);
  }
}
