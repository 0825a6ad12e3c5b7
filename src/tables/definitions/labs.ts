import {
  boolean,
  decimal,
  type EventOrigin,
  integer,
  json,
  text,
  type TableDefinition,
} from '../definition.ts';
import { MARKER } from './lab-tests.ts';

const MARKER_EXPECTED_RESULTS: TableDefinition = {
  name: 'marker_expected_results',
  description: 'What results the markers give, one a row, with their LOINC codes.',
  key: ['marker_id', 'id'],
  columns: [
    integer('marker_id', 'the marker', { from: { parent: 'id' }, required: true }),
    integer('result_index', 'position, from 0', { from: { of: 'position' } }),
    integer('id', 'identifier', { required: true }),
    text('name', 'name'),
    text('slug', 'short name'),
    integer('lab_id', 'the laboratory'),
    text('provider_id', 'identifier at the laboratory'),
    integer('loinc_id', 'identifier of the LOINC entry', { from: 'loinc.id' }),
    text('loinc_code', 'LOINC code', { from: 'loinc.code' }),
    text('loinc_name', 'LOINC name', { from: 'loinc.name' }),
    text('loinc_slug', 'LOINC short name', { from: 'loinc.slug' }),
    text('loinc_unit', 'unit of the result', { from: 'loinc.unit' }),
  ],
};

export const MARKERS: TableDefinition = {
  name: 'markers',
  description: 'Lab markers, one a row.',
  key: ['id'],
  columns: MARKER,
  nested: [{ at: 'expected_results', each: 'array', table: MARKER_EXPECTED_RESULTS }],
};

export const LAB_ACCOUNTS: TableDefinition = {
  name: 'lab_accounts',
  description: 'Lab accounts of the team, one a row.',
  key: ['id'],
  columns: [
    text('id', 'identifier, UUID', { required: true }),
    text('lab', 'lab identifier'),
    text('status', 'active, pending, suspended; open list'),
    text('delegated_flow', 'who handles the flow'),
    text('provider_account_id', 'identifier at the laboratory'),
    text('account_name', 'name'),
    text('org_id', 'organization, UUID'),
    text('default_clinical_notes', 'included on every order under the account'),
    json('allowed_billing', 'object as it came'),
    json('team_id_allowlist', 'array of team ids, UUIDs'),
    json('business_units', 'array of texts'),
  ],
};

const PARSING_EVENTS: EventOrigin = { types: ['lab_report.parsing_job.'], member: 'data' };

const PARSING_JOB_RESULTS: TableDefinition = {
  name: 'parsing_job_results',
  description: 'Biomarkers that were read from uploaded lab reports, one a row.',
  key: ['job_id', 'result_index'],
  events: PARSING_EVENTS,
  columns: [
    text('job_id', 'the parsing job', { from: { parent: 'id' }, required: true }),
    text('user_id', 'user, UUID', { from: { parent: 'user_id' } }),
    integer('result_index', 'position, from 0', { from: { of: 'position' }, required: true }),
    text('test_name', 'biomarker as the report names it', { older: 'name' }),
    text('value', 'the result as the report has it: a number, or words such as `negative`'),
    text('units', 'unit of the value', { older: 'unit' }),
    decimal('min_reference_range', 'least value that is normal'),
    decimal('max_reference_range', 'greatest value that is normal'),
    text('sample_type', 'urine, serum_plasma_blood …; open list'),
    text('interpretation', 'normal, abnormal, critical; open list'),
    json('loinc_matches', 'array of matches: loinc_code, loinc_name, confidence_score …', { older: 'loinc' }),
  ],
};

export const PARSING_JOBS: TableDefinition = {
  name: 'parsing_jobs',
  description: 'Lab report parsing jobs, one a row.',
  key: ['id'],
  events: PARSING_EVENTS,
  columns: [
    text('id', 'identifier', { required: true }),
    text('team_id', 'team, UUID'),
    text('user_id', 'user, UUID'),
    text('status', 'upload_pending, started, completed, failed, pending_review; open list'),
    text('failure_reason', 'why it failed'),
    boolean('needs_human_review', 'a person is to look at it'),
    boolean('is_reviewed', 'a person has'),
    json('metadata', 'about the report, as it came', { from: 'data.metadata' }),
  ],
  nested: [{ at: 'data.results', each: 'array', table: PARSING_JOB_RESULTS }],
};

const ZIP_CODE = text('zip_code', 'the area', { from: { parent: 'zip_code' }, required: true });

const AREA_CENTERS: TableDefinition = {
  name: 'area_centers',
  description: 'Patient service centers near the areas, one laboratory a row.',
  key: ['zip_code', 'lab'],
  columns: [
    ZIP_CODE,
    text('lab', 'lab identifier', { from: { of: 'key' }, required: true }),
    integer('within_radius', 'centers inside the radius', { from: 'patient_service_centers.within_radius' }),
    text('radius_miles', 'the radius, a text', { from: 'patient_service_centers.radius', unit: 'miles' }),
    json('capabilities', 'array of texts, such as stat', { from: 'patient_service_centers.capabilities' }),
  ],
};

const AREA_PHLEBOTOMY_PROVIDERS: TableDefinition = {
  name: 'area_phlebotomy_providers',
  description: 'Who draws blood at home in the areas, one provider a row.',
  key: ['zip_code', 'provider_index'],
  columns: [
    ZIP_CODE,
    integer('provider_index', 'position, from 0', { from: { of: 'position' }, required: true }),
    text('name', 'name of the provider'),
    json('tier', 'array of texts, such as appointment-ready'),
  ],
};

export const AREAS: TableDefinition = {
  name: 'areas',
  description: 'Phlebotomy and patient service center coverage, one zip code a row.',
  key: ['zip_code'],
  columns: [
    { ...ZIP_CODE, from: 'zip_code', description: 'five digits, or nine with a hyphen' },
    boolean('phlebotomy_is_served', 'blood is drawn at home here', { from: 'phlebotomy.is_served' }),
  ],
  nested: [
    { at: 'central_labs', each: 'map', table: AREA_CENTERS },
    { at: 'phlebotomy.providers', each: 'array', table: AREA_PHLEBOTOMY_PROVIDERS },
  ],
};
